package xdp

import (
	"testing"

	"github.com/vishvananda/netlink"
)

// TestDeviceOfAnyName: the kernel takes nearly any bytes as the name of a device; the port gets
// its programs, and they are found again.
func TestDeviceOfAnyName(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	ports := n.ports()
	pod := -1
	for i := range ports {
		if int(ports[i].Ifindex) == n.pod {
			pod = i
		}
	}
	for _, name := range []string{"ev\x1b[2Jil", "b\xff\xfe", "q\"\\'", "eth0.100"} {
		l, err := netlink.LinkByIndex(n.pod)
		must(t, err)
		must(t, netlink.LinkSetDown(l))
		must(t, netlink.LinkSetName(l, name)) // what the tables take, the kernel does
		must(t, netlink.LinkSetUp(l))
		must(t, ports[pod].SetDevice(name))
		must(t, n.o.SyncPorts(ports))
		wantPrograms(t, n.pod, onPod)
	}
	before := n.linkIDs(t)
	must(t, n.o.SyncPorts(ports))
	if after := n.linkIDs(t); len(after) != len(before) || len(after) == 0 {
		t.Errorf("links %v, and before %v", after, before)
	}
	must(t, n.o.SyncPorts(nil))
	wantPrograms(t, n.pod, nil)
}
