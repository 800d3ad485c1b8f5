package preflight

import (
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// lookAtDevices lists every device but loopback.
func lookAtDevices() (out []Device) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil
	}
	xdp, offloads := newXDPReader(), newOffloadReader()
	for _, l := range links {
		a := l.Attrs()
		if a.Flags&net.FlagLoopback != 0 {
			continue
		}
		d := Device{
			Name: a.Name, Kind: l.Type(), MTU: a.MTU,
			Up:       a.Flags&net.FlagUp != 0,
			Driver:   driverOf(a.Name),
			RxQueues: a.NumRxQueues,
			XDP:      xdp.read(a.Index),
			Offloads: offloads.read(a.Index),
		}
		if d.Kind == "device" {
			d.Kind = ""
		}
		out = append(out, d)
	}
	return out
}

func driverOf(name string) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	in, err := unix.IoctlGetEthtoolDrvinfo(fd, name)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(in.Driver[:])
}
