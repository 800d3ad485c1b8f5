package compile_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

func addrs(text string) (out []netip.Addr) {
	for _, s := range strings.Fields(text) {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// twoPods is a node with two pods and two uplinks.
func twoPods() model.Attachments {
	return model.Attachments{
		Ports: []model.Port{
			{ID: 1, Kind: model.PortHost, Device: "lace0", Ifindex: 2, MTU: 1500, Addresses: addrs("172.30.0.11 fd30::11")},
			{ID: 2, Kind: model.PortPod, Device: "veth-a", Ifindex: 10, MTU: 1500, HostMAC: [6]byte{2, 1}, PeerMAC: [6]byte{2, 2}, Addresses: addrs("10.244.1.1 fd00::1")},
			{ID: 3, Kind: model.PortPod, Device: "veth-b", Ifindex: 11, MTU: 1500, HostMAC: [6]byte{2, 3}, PeerMAC: [6]byte{2, 4}, Addresses: addrs("10.244.1.2")},
			{ID: 4, Kind: model.PortUplink, Device: "eth0", Ifindex: 3, MTU: 1500},
			{ID: 5, Kind: model.PortUplink, Device: "eth1", Ifindex: 4, MTU: 1500},
		},
		Routes: []model.Route{
			{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Port: 4},
			{Prefix: netip.MustParsePrefix("10.244.2.0/24"), Port: 4},
			{Prefix: netip.MustParsePrefix("10.244.3.0/24"), Port: 5},
			{Prefix: netip.MustParsePrefix("::/0"), Port: 4},
		},
		Node4: netip.MustParseAddr("172.30.0.11"),
		Node6: netip.MustParseAddr("fd30::11"),
	}
}

func TestAttachments(t *testing.T) {
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "problems", []string(nil), problemsOf(problems))
	for addr, port := range map[string]string{
		"172.30.0.11": "lace0", "fd00::1": "veth-a", "10.244.1.2": "veth-b", "10.244.1.9": "eth0", "10.244.3.9": "eth1", "2001:db8::1": "eth0",
	} {
		if got := deviceTo(s, addr); got != port {
			t.Errorf("%s leads to %q, want %q", addr, got, port)
		}
	}
	if s.Settings().NodeAddr4.String() != "172.30.0.11" || s.Settings().NodeAddr6.String() != "fd30::11" {
		t.Errorf("node's addresses are %s and %s", s.Settings().NodeAddr4, s.Settings().NodeAddr6)
	}
}

// TestDelivery: the way by which a port's new flows go is that port's alone.
func TestDelivery(t *testing.T) {
	a := twoPods()
	a.Ports[1].Delivery = model.Stack
	c := compile.New(nil)
	c.SetAttachments(a)
	for _, p := range snapshot(t, c, 1).Ports() {
		if got, want := p.Flags&table.PortStack != 0, p.Device() == "veth-a"; got != want {
			t.Errorf("the stack routes for %s: %v, want %v", p.Device(), got, want)
		}
	}
}

// TestNear: what is behind a veth is near, and no other port.
func TestNear(t *testing.T) {
	a := twoPods()
	for i := range a.Ports {
		a.Ports[i].Near = a.Ports[i].Device == "eth1"
	}
	c := compile.New(nil)
	c.SetAttachments(a)
	seen := 0
	for _, p := range snapshot(t, c, 1).Ports() {
		seen++
		if got, want := p.Flags&table.PortNear != 0, p.Device() == "eth1"; got != want {
			t.Errorf("%s is near: %v, want %v", p.Device(), got, want)
		}
	}
	if seen != len(a.Ports) {
		t.Errorf("%d ports, want %d", seen, len(a.Ports))
	}
}

func deviceTo(s *table.Snapshot, addr string) string {
	a := packetAddr(addr)
	id := uint16(0)
	if at := s.Address(0, &a); at != nil {
		id = at.Port
	} else if port, ok := s.Route(0, &a); ok {
		id = port
	}
	if p := s.Port(id); p != nil {
		return p.Device()
	}
	return ""
}

// TestPortGenerations: a port gets another generation when flows through it have to find
// their way anew, and at no other time.
func TestPortGenerations(t *testing.T) {
	pod := func(a *model.Attachments) *model.Port { return &a.Ports[1] }
	for _, tc := range []struct {
		name    string
		edit    func(a *model.Attachments)
		changed []string
	}{
		{"nothing", func(*model.Attachments) {}, nil},
		{"the order in which things are listed", func(a *model.Attachments) { slices.Reverse(a.Ports); slices.Reverse(a.Routes) }, nil},
		{"MTU", func(a *model.Attachments) { pod(a).MTU = 1400 }, nil},
		{"the pod's MAC", func(a *model.Attachments) { pod(a).PeerMAC[0] = 6 }, []string{"veth-a"}},
		{"the gateway's MAC", func(a *model.Attachments) { pod(a).HostMAC[0] = 6 }, []string{"veth-a"}},
		{"the device was made again", func(a *model.Attachments) { pod(a).Ifindex = 99 }, []string{"veth-a"}},
		{"the id passed to another device", func(a *model.Attachments) { pod(a).Device = "veth-z" }, []string{"veth-z"}},
		{"another address comes", func(a *model.Attachments) { pod(a).Addresses = addrs("10.244.1.1 fd00::1 fd00::2") }, []string{"eth0"}},
		{"an address goes", func(a *model.Attachments) { pod(a).Addresses = addrs("10.244.1.1") }, []string{"veth-a"}},
		{"an address moves between pods", func(a *model.Attachments) {
			pod(a).Addresses, a.Ports[2].Addresses = addrs("fd00::1"), addrs("10.244.1.2 10.244.1.1")
		}, []string{"veth-a"}},
		{"a route moves to another uplink", func(a *model.Attachments) { a.Routes[1].Port = 5 }, []string{"eth0"}},
		{"a route goes", func(a *model.Attachments) { a.Routes = slices.Delete(a.Routes, 2, 3) }, []string{"eth1"}},
		{"a longer route takes from a shorter one", func(a *model.Attachments) {
			a.Routes = append(a.Routes, model.Route{Prefix: netip.MustParsePrefix("10.244.2.128/25"), Port: 5})
		}, []string{"eth0"}},
		{"a longer route the same way", func(a *model.Attachments) {
			a.Routes = append(a.Routes, model.Route{Prefix: netip.MustParsePrefix("10.244.2.128/25"), Port: 4})
		}, nil},
		{"a new pod", func(a *model.Attachments) {
			a.Ports = append(a.Ports, model.Port{ID: 6, Kind: model.PortPod, Device: "veth-c", Ifindex: 12, MTU: 1500, Addresses: addrs("10.244.1.3")})
		}, []string{"eth0", "veth-c"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, restart := range []bool{false, true} {
				c := compile.New(nil)
				c.SetAttachments(twoPods())
				before := snapshot(t, c, 1)
				if restart {
					c = compile.New(before)
				}
				a := twoPods()
				tc.edit(&a)
				c.SetAttachments(a)
				after := snapshot(t, c, 2)
				var got []string
				for _, p := range after.Ports() {
					if was := before.Port(p.ID); was == nil || was.Generation != p.Generation {
						got = append(got, p.Device())
					}
				}
				slices.Sort(got)
				diff(t, "ports with another generation", tc.changed, got)
			}
		})
	}
}

func TestPortIDUsedAgain(t *testing.T) {
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	before := snapshot(t, c, 1).Port(2).Generation
	without := twoPods()
	without.Ports = slices.Delete(without.Ports, 1, 2)
	c.SetAttachments(without)
	snapshot(t, c, 2)
	c.SetAttachments(twoPods())
	if now := snapshot(t, c, 3).Port(2).Generation; now == before {
		t.Error("port 2 was gone and is back under the generation of before")
	}
}

// TestBrokenAttachments: what is wrong with one port costs the others nothing.
func TestBrokenAttachments(t *testing.T) {
	for _, tc := range []struct {
		name    string
		edit    func(a *model.Attachments)
		problem string
	}{
		{"an id that is out of range", func(a *model.Attachments) { a.Ports[2].ID = 5000 }, "Port veth-b BadPort"},
		{"an id without a meaning", func(a *model.Attachments) { a.Ports[2].ID = 0 }, "Port veth-b BadPort"},
		{"a second port with the id of the node", func(a *model.Attachments) { a.Ports[2].ID = 1 }, "Port veth-b BadPort"},
		{"an id twice", func(a *model.Attachments) { a.Ports[2].ID = 2 }, "Port veth-b DuplicatePort"},
		{"no MTU", func(a *model.Attachments) { a.Ports[2].MTU = 0 }, "Port veth-b BadPort"},
		{"a name that is too long", func(a *model.Attachments) { a.Ports[2].Device = "a-name-that-is-too-long" }, "Port a-name-that-is-too-long BadPort"},
		{"an unknown kind", func(a *model.Attachments) { a.Ports[2].Kind = 9 }, "Port veth-b BadPort"},
		{"an address of another port", func(a *model.Attachments) { a.Ports[2].Addresses = addrs("10.244.1.1") }, "Port veth-b DuplicateAddress"},
		{"an address of its own twice", func(a *model.Attachments) { a.Ports[2].Addresses = addrs("10.244.1.2 10.244.1.2") }, ""},
		{"an address that is none", func(a *model.Attachments) { a.Ports[2].Addresses = []netip.Addr{{}} }, "Port veth-b BadAddress"},
		{"a route through no port", func(a *model.Attachments) { a.Routes[2].Port = 9 }, "Port 9 BadRoute"},
		{"a route that is no prefix", func(a *model.Attachments) { a.Routes[2].Prefix = netip.Prefix{} }, "Port 5 BadRoute"},
		{"a route twice", func(a *model.Attachments) { a.Routes[2] = a.Routes[1]; a.Routes[2].Port = 5 }, "Port 5 DuplicateRoute"},
		{"addresses of the node in the wrong family", func(a *model.Attachments) { a.Node4, a.Node6 = a.Node6, a.Node4 }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := twoPods()
			tc.edit(&a)
			c := compile.New(nil)
			c.SetAttachments(a)
			s, problems := snapshotProblems(t, c, 1)
			var want []string
			if tc.problem != "" {
				want = []string{tc.problem}
			}
			diff(t, "problems", want, problemsOf(problems))
			for addr, port := range map[string]string{"172.30.0.11": "lace0", "10.244.1.1": "veth-a", "10.244.2.9": "eth0"} {
				if got := deviceTo(s, addr); got != port {
					t.Errorf("%s leads to %q, want %q", addr, got, port)
				}
			}
		})
	}
}

// TestAddressesBeyondTheTables: what does not fit is named, and the rest is served.
func TestAddressesBeyondTheTables(t *testing.T) {
	const most = 65536
	a := twoPods()
	pod := &a.Ports[2]
	others := len(a.Ports[0].Addresses) + len(a.Ports[1].Addresses)
	pod.Addresses = nil
	for i := range most - others + 1 {
		pod.Addresses = append(pod.Addresses, netip.AddrFrom4([4]byte{10, 64 + byte(i>>16), byte(i >> 8), byte(i)}))
	}
	c := compile.New(nil)
	c.SetAttachments(a)
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "problems", []string{"Port veth-b TableFull"}, problemsOf(problems))
	beyond := pod.Addresses[len(pod.Addresses)-1]
	if len(problems) == 1 && !strings.HasPrefix(problems[0].Message, beyond.String()+" ") {
		t.Errorf("message %q does not name %s", problems[0].Message, beyond)
	}
	diff(t, "where addresses lead", []string{"veth-a", "veth-b", "eth0"}, []string{deviceTo(s, "10.244.1.1"), deviceTo(s, "10.64.0.0"), deviceTo(s, beyond.String())})
}

func packetAddr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }
