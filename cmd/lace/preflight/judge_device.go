package preflight

import (
	"fmt"
	"strings"

	"lace-cni.io/lace/slowpath/attach"
)

// judgeTrunk looks at the trunk where there is one: the checksum offload that would make
// every punted packet wrong, and the mode in force.
func judgeTrunk(f *Facts) (out []Finding) {
	lace0 := f.device(TrunkDevice)
	if lace0 == nil {
		return []Finding{ok("trunk", "not made yet; lace-fastpath makes it")}
	}
	check := "trunk " + lace0.Name
	switch {
	case lace0.Offloads == nil:
		out = append(out, warn(check, "the kernel does not tell its offloads", "look with: ethtool -k "+lace0.Name))
	case checksumsOnSend(lace0.Offloads):
		out = append(out, fail(check, "tx-checksum offload is on: packets reach Go without checksum",
			"ethtool -K "+lace0.Name+" tx off, or restart lace-fastpath"))
	default:
		out = append(out, ok(check, "tx-checksum offload is off"))
	}
	if !lace0.Up {
		out = append(out, fail(check, "is down", "ip link set "+lace0.Name+" up, or restart lace-fastpath"))
	}
	return out
}

func checksumsOnSend(offloads map[string]bool) bool {
	for name := range offloads {
		if strings.HasPrefix(name, "tx-checksum-") {
			return true
		}
	}
	return false
}

// judgeDevices gives a line to each device that could carry Services' packets.
func judgeDevices(f *Facts) (out []Finding) {
	limit := attach.MostTrunkMTU
	if lace0 := f.device(TrunkDevice); lace0 != nil {
		limit = lace0.MTU
	} else if f.Fastpath != nil && f.Fastpath.TrunkMTU > 0 {
		limit = f.Fastpath.TrunkMTU
	}
	for i := range f.Devices {
		d := &f.Devices[i]
		if d.Name != TrunkDevice {
			out = append(out, judgeDevice(d, limit)...)
		}
	}
	return out
}

func judgeDevice(d *Device, trunk int) (out []Finding) {
	check := "device " + d.Name
	if d.MTU > trunk && d.Up {
		what, do := attach.TooLong(d.MTU, trunk)
		out = append(out, warn(check, what, do))
	}
	if d.Offloads["rx-lro"] {
		out = append(out, fail(check, "large receive offload is on: it glues packets that are to be forwarded",
			"ethtool -K "+d.Name+" lro off"))
	}
	if len(out) == 0 {
		out = append(out, ok(check, d.describe()))
	}
	return out
}

func (d *Device) describe() string {
	what := d.Driver
	if what == "" {
		what = d.Kind
	}
	state := "up"
	if !d.Up {
		state = "down"
	}
	return fmt.Sprintf("%s, %s, MTU %d, %d queues; XDP in its driver: %s (does not matter: AF_XDP runs on the trunk)", what, state, d.MTU, d.RxQueues, d.XDP)
}

// String names the mode that XDP would have on the device.
func (x *XDPFeatures) String() string {
	switch {
	case x == nil:
		return "unknown"
	case !x.Native:
		return "generic"
	case x.ZeroCopy:
		return "native, zero-copy"
	}
	return "native, copy"
}
