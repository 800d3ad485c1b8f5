package attach

import (
	"net/netip"
	"slices"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// TestRouteMTU: a port takes packets as long as the narrowest route through its device,
// for they are delivered past the routes.
func TestRouteMTU(t *testing.T) {
	narrowed := func(dst, device string, mtu int) func(*world) {
		return func(w *world) {
			w.must(w.AppendRoute(netdev.Route{Destination: netip.MustParsePrefix(dst), Device: w.index(device), MTU: mtu}))
		}
	}
	for _, c := range []struct {
		name     string
		build    []func(*world)
		eth0, at int // MTU of the uplink and of the pod
	}{
		{"without such a route the device counts", nil, 1500, 1500},
		{"a narrow route narrows its device's port, and no other", []func(*world){narrowed("10.244.2.0/24", "eth0", 1400)}, 1400, 1500},
		{"so does one of IPv6", []func(*world){narrowed("fd00:10:244:2::/64", "eth0", 1400)}, 1400, 1500},
		{"of several the narrowest counts", []func(*world){narrowed("10.244.2.0/24", "eth0", 1400), narrowed("10.244.3.0/24", "eth0", 1300), narrowed("10.244.4.0/24", "eth0", 1450)}, 1300, 1500},
		{"a route to a pod narrows the pod's port", []func(*world){narrowed("10.244.1.5/32", "vethA", 1420)}, 1500, 1420},
		{"a route that promises more than its device does not keep it", []func(*world){narrowed("10.244.2.0/24", "eth0", 9000)}, 1500, 1500},
		{"a route that says less than any link may take is not believed", []func(*world){narrowed("10.244.2.0/24", "eth0", 60)}, 1500, 1500},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.routed("vethA", "10.244.1.5")
			for _, b := range c.build {
				b(w)
			}
			a, _ := w.derive(newIDs(nil))
			want := map[string]int{"eth0": c.eth0, "vethA": c.at}
			for _, p := range a.Ports {
				if p.MTU != want[p.Device] {
					t.Errorf("%s has an MTU of %d, want %d", p.Device, p.MTU, want[p.Device])
				}
				delete(want, p.Device)
			}
			if len(want) != 0 {
				t.Errorf("ports missing: %v", want)
			}
		})
	}
}

// TestRouteMTUOfTheTrunk: that the routes to the trunk carry what lies behind it does not
// make the trunk itself narrower.
func TestRouteMTUOfTheTrunk(t *testing.T) {
	w := newWorld(t)
	w.trunk(3498)
	w.must(w.AppendRoute(netdev.Route{Destination: netip.MustParsePrefix("10.96.0.0/16"), Device: w.index(Trunk), MTU: 1280}))
	a, _ := w.derive(newIDs(nil))
	i := slices.IndexFunc(a.Ports, func(p model.Port) bool { return p.Kind == model.PortHost })
	if i < 0 || a.Ports[i].MTU != 3498 {
		t.Errorf("ports %+v, want the trunk's with an MTU of 3498", a.Ports)
	}
}
