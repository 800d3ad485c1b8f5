package agent

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev/netdevtest"
	"lace-cni.io/lace/slowpath/publish"
)

// forwarded is a node with an uplink, two pods and a Service of the families.
func forwarded(families ...int) *publish.State {
	of := map[int]model.FamilyChoice{}
	for _, f := range families {
		of[f] = model.FamilyChoice{}
	}
	return &publish.State{
		Services: []*model.Service{{Name: model.Name{Namespace: "demo", Name: "web"}, Ports: []model.ServicePort{{
			Frontends: []model.Frontend{{Addr: netip.MustParseAddr("10.96.0.10")}}, Families: of,
		}}}},
		Attachments: model.Attachments{Ports: []model.Port{
			{Kind: model.PortHost, Device: "lace0"}, {Kind: model.PortUplink, Device: "eth0"},
			{Kind: model.PortPod, Device: "veth1"}, {Kind: model.PortPod, Device: "veth2"},
		}},
	}
}

// switches writes files as /proc/sys/net has them.
func switches(t *testing.T, dir string, values map[string]string) {
	t.Helper()
	for name, value := range values {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForwardingThatIsOff is a Problem of the node that names the switch, for as long as it is
// off and Services of the family need it.
func TestForwardingThatIsOff(t *testing.T) {
	const four, six = "ipv4/ip_forward", "ipv6/conf/all/forwarding"
	device := func(name string) string { return "ipv4/conf/" + name + "/forwarding" }
	for _, c := range []struct {
		name  string
		off   []string // switches that are 0, of those that are there
		state *publish.State
		says  []string // one Problem each, with this in it
	}{
		{"all is on", nil, forwarded(4, 6), nil},
		{"IPv4 is off, and with it every device, which is one Problem", []string{four, device("eth0"), device("veth1"), device("veth2")}, forwarded(4, 6), []string{"does not forward IPv4, "}},
		{"IPv6 is off", []string{six}, forwarded(4, 6), []string{"sysctl -w net.ipv6.conf.all.forwarding=1"}},
		{"both are off", []string{four, six}, forwarded(4, 6), []string{"sysctl -w net.ipv4.ip_forward=1", "does not forward IPv6, "}},
		{"IPv6 is off where no Service has it", []string{six}, forwarded(4), nil},
		{"IPv4 is off where no Service has it", []string{four}, forwarded(6), nil},
		{"there are no Services", []string{four, six}, forwarded(), nil},
		{"nothing is published yet", []string{four, six}, nil, nil},
		{"devices are off that the node would forward from", []string{device("veth2"), device("eth0")}, forwarded(4), []string{"0 of eth0, veth2: the kernel does not forward IPv4"}},
		{"the trunk's own switch is nobody's", []string{device("lace0")}, forwarded(4), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &forwardingWatch{sys: t.TempDir(), node: "n1", delivery: model.Stack}
			on := map[string]string{four: "1", six: "1", device("lace0"): "1", device("eth0"): "1", device("veth1"): "1", device("veth2"): "1"}
			for _, name := range c.off {
				on[name] = "0"
			}
			switches(t, w.sys, on)
			got := w.look(c.state)
			if len(got) != len(c.says) {
				t.Fatalf("Problems %v, want %d", got, len(c.says))
			}
			for i, word := range c.says {
				if p := got[i]; p.Kind != "Node" || p.Object != "n1" || p.Reason != "ForwardingOff" || !strings.Contains(p.Message, word) {
					t.Errorf("Problem %+v, want one of the node that says %q", p, word)
				}
			}
		})
	}
}

// TestForwardingOfAKernelWithoutIPv6, or of a device that has just gone, is not known to be off.
func TestForwardingOfAKernelWithoutIPv6(t *testing.T) {
	w := &forwardingWatch{sys: t.TempDir(), node: "n1", delivery: model.Stack}
	switches(t, w.sys, map[string]string{"ipv4/ip_forward": "1", "ipv4/conf/eth0/forwarding": "1"})
	if got := w.look(forwarded(4, 6)); len(got) != 0 {
		t.Errorf("Problems %v", got)
	}
}

// TestForwardingInDirectDelivery is nobody's concern: packets go past the node's stack.
func TestForwardingInDirectDelivery(t *testing.T) {
	w := &forwardingWatch{sys: t.TempDir(), node: "n1", delivery: model.Direct}
	switches(t, w.sys, map[string]string{"ipv4/ip_forward": "0"})
	if err := w.run(t.Context(), func() *publish.State { return forwarded(4) }); err != nil || w.found() != nil {
		t.Errorf("%v, Problems %v", err, w.found())
	}
}

// TestForwardingSwitchesAreTheKernels: where they are read is where the kernel has them, and
// switching the node off is one Problem however many devices follow.
func TestForwardingSwitchesAreTheKernels(t *testing.T) {
	space := netdevtest.New(t)
	other := netdevtest.New(t)
	space.Veth("eth0", other, "far")
	w := newForwardingWatch(&Config{NodeName: "n1", Delivery: model.Stack})
	reasons := func() (out []string) {
		space.Do(func() {
			for _, p := range w.look(forwarded(4, 6)) {
				words := strings.Fields(p.Message)
				out = append(out, p.Reason+" "+words[0])
			}
		})
		return out
	}
	for _, step := range []struct {
		set, to string
		want    []string
	}{
		{"net/ipv4/ip_forward", "1", []string{"ForwardingOff net.ipv6.conf.all.forwarding"}},
		{"net/ipv6/conf/all/forwarding", "1", nil},
		{"net/ipv4/conf/eth0/forwarding", "0", []string{"ForwardingOff net.ipv4.conf.DEVICE.forwarding"}},
		{"net/ipv4/ip_forward", "0", []string{"ForwardingOff net.ipv4.ip_forward"}},
		{"net/ipv4/ip_forward", "1", nil},
	} {
		space.Set(step.set, step.to)
		if got := reasons(); !slices.Equal(got, step.want) {
			t.Errorf("%s = %s: %q, want %q", step.set, step.to, got, step.want)
		}
	}
}
