package preflight

import (
	"strings"
	"testing"
)

// healthy is a machine without a fault, and with a running fast path.
func healthy() Facts {
	return Facts{
		Places:       Places{StateDir: "/run/lace", BPFFS: "/sys/fs/bpf"},
		Kernel:       "6.6.1-generic",
		Features:     []Feature{{Name: "XSKMAP"}},
		BPFFSMounted: true,
		MemlockBytes: 8 << 20,
		Forwarding:   map[string]string{"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"},
		Devices: []Device{
			{Name: "eth0", Driver: "virtio_net", Up: true, MTU: 1500, RxQueues: 2, XDP: &XDPFeatures{Native: true, ZeroCopy: true}, Offloads: map[string]bool{"rx-gro": true}},
			{Name: "lace0", Kind: "veth", Up: true, MTU: 1500, Offloads: map[string]bool{"rx-checksum": true}},
		},
		Fastpath:      &Fastpath{PID: 7, XDPMode: "native", SocketMode: "copy", Workers: 1, Queues: 1, TrunkMTU: 1500},
		FastpathAlive: true,
		Pins:          []string{"lace/maps/flows"},
	}
}

// A machine without a fault gets no finding but ok, and a word on everything.
func TestHealthyMachine(t *testing.T) {
	findings := Judge(healthy())
	for _, f := range findings {
		if f.Verdict != OK || f.Found == "" || f.Do != "" {
			t.Errorf("%+v", f)
		}
	}
	if Failed(findings) || len(findings) < 10 {
		t.Errorf("%d findings, failed: %v", len(findings), Failed(findings))
	}
}

// One fault brings one verdict that is not ok, names what was found, and says what to do.
func TestEachFault(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(*Facts)
		want  Verdict
		check string
		found string
		do    string
	}{
		{"a kernel without tcx", func(f *Facts) { f.Kernel = "6.5.13" }, Fail, "kernel", "6.5.13", "6.6"},
		{"an old major version", func(f *Facts) { f.Kernel = "5.19.0" }, Fail, "kernel", "5.19.0", "6.6"},
		{"an unreadable version", func(f *Facts) { f.Kernel = "" }, Warn, "kernel", "cannot be read", "6.6"},
		{"a kernel without AF_XDP", func(f *Facts) { f.Features[0].Error = "not in this kernel" }, Fail, "kernel features", "XSKMAP", "kernel"},
		{"features that only root can probe", func(f *Facts) { f.Features[0].Unknown = true }, Warn, "kernel features", "XSKMAP", "root"},
		{"a missing capability", func(f *Facts) { f.MissingCaps = []string{"CAP_BPF (maps)"} }, Fail, "capabilities", "CAP_BPF", "root"},
		{"no bpf file system", func(f *Facts) { f.BPFFSMounted = false }, Fail, "bpf file system", "/sys/fs/bpf", "mount -t bpf"},
		{"no forwarding of IPv4", func(f *Facts) { f.Forwarding["net.ipv4.ip_forward"] = "0" }, Fail, "forwarding", "ip_forward = 0", "sysctl -w"},
		{"no IPv6 at all", func(f *Facts) { f.Forwarding["net.ipv6.conf.all.forwarding"] = "absent" }, Warn, "forwarding", "does not exist", "family"},
		{"kube-proxy", func(f *Facts) { f.KubeProxy = []string{"process 12"} }, Fail, "kube-proxy", "process 12", "replace-kube-proxy.md"},
		{"the cgroup root out of reach", func(f *Facts) { f.NoCgroupRoot = "not mounted" }, Warn, "cgroup root", "node ports: not mounted", "/sys/fs/cgroup"},
		{"pins without a fast path", func(f *Facts) { f.FastpathAlive = false }, Warn, "fast path", "1 objects are pinned", "start lace-fastpath"},
		{"checksum offload on the trunk", func(f *Facts) { f.Devices[1].Offloads["tx-checksum-ip-generic"] = true }, Fail, "trunk lace0", "tx-checksum", "tx off"},
		{"a trunk whose offloads are unknown", func(f *Facts) { f.Devices[1].Offloads = nil }, Warn, "trunk lace0", "offloads", "ethtool -k"},
		{"a trunk that is down", func(f *Facts) { f.Devices[1].Up = false }, Fail, "trunk lace0", "down", "ip link set lace0 up"},
		{"a device with a larger MTU than the trunk", func(f *Facts) { f.Devices[0].MTU = 3000 }, Warn, "device eth0", "MTU 3000 exceeds the trunk's 1500", "--trunk-mtu 3000"},
		{"one that no trunk fits", func(f *Facts) { f.Devices[0].MTU = 9000 }, Warn, "device eth0", "MTU 9000 exceeds the trunk's 1500", "MTU to 1500; no trunk takes more than 3506"},
		{"large receive offload", func(f *Facts) { f.Devices[0].Offloads["rx-lro"] = true }, Fail, "device eth0", "large receive", "lro off"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			facts := healthy()
			c.spoil(&facts)
			findings := Judge(facts)
			var odd []Finding
			for _, f := range findings {
				if f.Verdict != OK {
					odd = append(odd, f)
				}
			}
			if len(odd) != 1 {
				t.Fatalf("findings %+v, want one that is not ok", odd)
			}
			f := odd[0]
			if f.Verdict != c.want || f.Check != c.check || !strings.Contains(f.Found, c.found) || !strings.Contains(f.Do, c.do) {
				t.Errorf("got %+v, want %s for %s with %q and advice %q", f, c.want, c.check, c.found, c.do)
			}
			if Failed(findings) != (c.want == Fail) {
				t.Errorf("Failed is %v for %s", Failed(findings), c.want)
			}
		})
	}
}

// Locked memory is a fault only where neither the limit nor the capability is enough.
func TestLockedMemory(t *testing.T) {
	without := []string{"CAP_IPC_LOCK (AF_XDP frame memory)"}
	for _, c := range []struct {
		missing []string
		limit   uint64
		want    Verdict
	}{
		{nil, 8 << 20, OK},
		{nil, ^uint64(0), OK},
		{without, 8 << 20, Fail},
		{without, ^uint64(0), OK},
	} {
		if got := judgeMemlock(Facts{MissingCaps: c.missing, MemlockBytes: c.limit}); got.Verdict != c.want {
			t.Errorf("limit %d, missing %v: %+v, want %s", c.limit, c.missing, got, c.want)
		}
	}
}

// What is odd about a device hides nothing that is wrong with it.
func TestADeviceWithTwoFaults(t *testing.T) {
	f := Facts{Devices: []Device{{Name: "eth0", Up: true, MTU: 9000, Offloads: map[string]bool{"rx-lro": true}}}}
	if got := judgeDevices(&f); len(got) != 2 || got[0].Verdict != Warn || got[1].Verdict != Fail {
		t.Errorf("%+v", got)
	}
}

// Without a trunk, devices are measured against the largest one that can be made; a device
// that is down does not matter.
func TestMTUWithoutTrunk(t *testing.T) {
	f := Facts{Devices: []Device{{Name: "eth0", Up: true, MTU: 3506}, {Name: "eth1", Up: true, MTU: 3507}, {Name: "eth2", MTU: 9000}}}
	got := judgeDevices(&f)
	if got[0].Verdict != OK || got[1].Verdict != Warn || got[2].Verdict != OK {
		t.Errorf("%+v", got)
	}
}

// The mode in the description is what the driver says.
func TestXDPMode(t *testing.T) {
	for _, c := range []struct {
		x    *XDPFeatures
		want string
	}{
		{nil, "unknown"},
		{&XDPFeatures{}, "generic"},
		{&XDPFeatures{Native: true}, "native, copy"},
		{&XDPFeatures{Native: true, ZeroCopy: true}, "native, zero-copy"},
	} {
		if got := c.x.String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.x, got, c.want)
		}
	}
}
