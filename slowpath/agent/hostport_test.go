package agent

import (
	"net"
	"net/netip"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/hostport"
	"lace-cni.io/lace/slowpath/publish"
)

// TestProcessOnANodePort: the Service has the port, and says that a process wants it too,
// once for all addresses, as long as that is so.
func TestProcessOnANodePort(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	number := uint16(l.Addr().(*net.TCPAddr).Port)
	at := func(a string, p model.Protocol) model.Frontend {
		return model.Frontend{Kind: model.NodePort, Addr: netip.MustParseAddr(a), Port: number, Protocol: p}
	}
	state := &publish.State{
		Node: model.Node{NodePorts: []netip.Addr{netip.MustParseAddr("172.30.0.11")}},
		Services: []*model.Service{{Name: model.Name{Namespace: "demo", Name: "web"}, Ports: []model.ServicePort{
			{Frontends: []model.Frontend{at("172.30.0.11", model.UDP)}},
			{Frontends: []model.Frontend{at("172.30.0.11", model.TCP), at("fd30::11", model.TCP)}},
		}}},
	}
	w := &portWatch{proc: "/proc/thread-self/net", reserved: hostport.Reservation{Sys: "/proc/sys/net/ipv4"}, node: "n1"}
	problems := func() (out []string) {
		for _, p := range w.look(state) {
			out = append(out, p.Kind+" "+p.Object+" "+p.Field+" "+p.Reason)
		}
		return out
	}
	if got := problems(); len(got) != 1 || got[0] != "Service demo/web spec.ports[1].nodePort PortInUse" {
		t.Errorf("problems %q", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := problems(); len(got) != 0 {
		t.Errorf("problems %q after the process ended", got)
	}
}

// TestSourcePortsThatCannotBeReserved are told.
func TestSourcePortsThatCannotBeReserved(t *testing.T) {
	w := &portWatch{reserved: hostport.Reservation{Sys: t.TempDir()}, node: "n1", span: hostport.Span{First: 61000, Last: 65535}}
	if got := w.look(nil); len(got) != 1 || got[0].Reason != "SourcePortsNotReserved" {
		t.Errorf("problems %v", got)
	}
}
