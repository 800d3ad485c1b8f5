package agent

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
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
	w := &portWatch{proc: "/proc/thread-self/net", reserved: portSettings(t, "32768 60999", ""), node: "n1"}
	problems := func() (out []string) {
		for _, p := range w.look(state) {
			out = append(out, p.Kind+" "+p.Object+" "+p.Field+" "+p.Reason)
		}
		return out
	}
	if got := problems(); len(got) != 1 || got[0] != "Service demo/web spec.ports[1].nodePort PortInUse" {
		t.Errorf("problems %q", got)
	}
	state.Lost = model.Lost{}
	for _, a := range []string{"172.30.0.11", "fd30::11"} {
		state.Lost[model.Place{Service: state.Services[0].Name, Addr: netip.MustParseAddr(a), Port: number, Protocol: model.TCP}] = "lace-agent"
	}
	if got := problems(); len(got) != 0 {
		t.Errorf("problems %q of a node port that the Service does not have", got)
	}
	state.Lost = nil
	state.Services = append(state.Services, &model.Service{Name: model.Name{Namespace: "demo", Name: "balanced"}, HealthPort: number})
	if got := problems(); len(got) != 0 {
		t.Errorf("problems %q of a port at which the agent answers balancers", got)
	}
	state.Services = state.Services[:1]
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := problems(); len(got) != 0 {
		t.Errorf("problems %q after the process ended", got)
	}
}

// portSettings are a node's, in files.
func portSettings(t *testing.T, given, reserved string) hostport.Reservation {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"ip_local_port_range": given, "ip_local_reserved_ports": reserved} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return hostport.Reservation{Sys: dir, Record: filepath.Join(dir, "record")}
}

// TestNodePortsAreNotGivenToProcesses: one that lies in the range of ports which processes get
// is reserved, and where that cannot be, it is told.
func TestNodePortsAreNotGivenToProcesses(t *testing.T) {
	at := func(port uint16, kind model.FrontendKind) model.ServicePort {
		return model.ServicePort{Frontends: []model.Frontend{
			{Kind: kind, Addr: netip.MustParseAddr("172.30.0.11"), Port: port, Protocol: model.UDP},
			{Kind: kind, Addr: netip.MustParseAddr("fd30::11"), Port: port, Protocol: model.UDP},
		}}
	}
	state := &publish.State{
		Node: model.Node{NodePorts: []netip.Addr{netip.MustParseAddr("172.30.0.11")}},
		Services: []*model.Service{{Name: model.Name{Namespace: "demo", Name: "web"}, Ports: []model.ServicePort{
			at(30080, model.NodePort), at(40000, model.NodePort), at(40001, model.ClusterIP), at(40002, model.NodePort),
		}}},
	}
	w := &portWatch{proc: t.TempDir(), reserved: portSettings(t, "32768 60999", "9000"), node: "n1"}
	if got := w.look(state); len(got) > 0 {
		t.Errorf("problems %v", got)
	}
	list := filepath.Join(w.reserved.Sys, "ip_local_reserved_ports")
	if b, err := os.ReadFile(list); err != nil || string(b) != "9000,40000,40002\n" {
		t.Errorf("reserved %q, %v; want the two that lie in the range beside what was", b, err)
	}
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	if got := w.look(state); len(got) != 1 || got[0].Kind != "Node" || got[0].Reason != "NodePortsNotReserved" {
		t.Errorf("problems %v", got)
	}
	state.Services[0].Ports = state.Services[0].Ports[:1]
	if got := w.look(state); len(got) > 0 {
		t.Errorf("problems %v of node ports outside of that range", got)
	}
}

// TestSpoiledNoteOfReservedPorts is logged once, and says again what Lace has reserved.
func TestSpoiledNoteOfReservedPorts(t *testing.T) {
	var log bytes.Buffer
	c := config(t, &log)
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	c.Settings.SourcePortFirst, c.Settings.SourcePortLast = 61000, 65535
	w := newPortWatch(&c)
	w.reserved.Sys = portSettings(t, "32768 65535", "9000").Sys
	note := c.path("reserved-ports")
	for _, spoil := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(note, []byte("garbage"), 0o600) },
		func() error { return os.Remove(note) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := w.look(nil); len(got) > 0 {
				t.Errorf("problems %v", got)
			}
		}
		if b, err := os.ReadFile(note); err != nil || string(b) != "61000-65535\nbeside 9000\n" {
			t.Errorf("the note is %q, %v", b, err)
		}
	}
	if n := strings.Count(log.String(), note); n != 2 {
		t.Errorf("the note is in the log %d times, want one for each time:\n%s", n, &log)
	}
}

// TestSourcePortsThatCannotBeReserved are told.
func TestSourcePortsThatCannotBeReserved(t *testing.T) {
	w := &portWatch{reserved: hostport.Reservation{Sys: t.TempDir()}, node: "n1", span: hostport.Span{First: 61000, Last: 65535}}
	if got := w.look(nil); len(got) != 1 || got[0].Reason != "SourcePortsNotReserved" {
		t.Errorf("problems %v", got)
	}
}
