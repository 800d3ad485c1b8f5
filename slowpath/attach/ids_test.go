package attach

import (
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

func idsOf(a model.Attachments) map[string]uint16 {
	out := make(map[string]uint16)
	for _, p := range a.Ports {
		out[p.Device] = p.ID
	}
	return out
}

// known is what a snapshot with these ports hands to the next agent.
func known(t *testing.T, a model.Attachments) []table.Port {
	t.Helper()
	var out []table.Port
	for _, p := range a.Ports {
		e := table.Port{ID: p.ID, Kind: table.PortKind(p.Kind), Ifindex: uint32(p.Ifindex)}
		if err := e.SetDevice(p.Device); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestIDsStayAsLongAsTheDevice(t *testing.T) {
	w := newWorld(t)
	w.trunk(1500)
	w.routed("vethA", "10.244.1.5")
	w.routed("vethB", "10.244.1.6")
	s := newIDs(nil)
	first, _ := w.derive(s)
	before := idsOf(first)
	if before["lace0"] != table.HostPort {
		t.Errorf("the node itself is port %d, want %d", before["lace0"], table.HostPort)
	}

	restarted := newIDs(known(t, first))
	w.routed("vethC", "10.244.1.7")
	second, _ := w.derive(restarted)
	after := idsOf(second)
	for name, id := range before {
		if after[name] != id {
			t.Errorf("%s: id %d after a restart, want still %d", name, after[name], id)
		}
	}
	for name, id := range before {
		if after["vethC"] == id {
			t.Errorf("the new vethC has the id %d of %s", id, name)
		}
	}
}

func TestANewDeviceOfTheSameNameIsANewPort(t *testing.T) {
	w := newWorld(t)
	w.routed("vethA", "10.244.1.5")
	s := newIDs(nil)
	a, _ := w.derive(s)
	w.must(w.DeleteLink("vethA"))
	w.routed("vethA", "10.244.1.5")
	b, _ := w.derive(s)
	if old, now := idsOf(a)["vethA"], idsOf(b)["vethA"]; old == now {
		t.Errorf("both devices have id %d: packets under way to the first would go to the second", old)
	}
}

func TestADeviceThatTurnsIntoAnUplinkIsANewPort(t *testing.T) {
	w := newWorld(t)
	w.routed("vethA", "10.244.1.5")
	s := newIDs(nil)
	a, _ := w.derive(s)
	w.address("vethA", "10.9.0.1/24")
	b, _ := w.derive(s)
	if old, now := idsOf(a)["vethA"], idsOf(b)["vethA"]; now == 0 || old == now {
		t.Errorf("id %d as a pod and %d as an uplink, want two", old, now)
	}
}

func TestIDsRunOutWithAProblemAndNotWithATwinAndComeBack(t *testing.T) {
	s := newIDs(nil)
	ports := make([]model.Port, table.MaxPorts)
	for i := range ports {
		ports[i] = model.Port{Kind: model.PortPod, Device: "veth", Ifindex: i + 10}
	}
	numbered, refused := s.assign(ports)
	if len(numbered) != table.MaxPorts-int(firstID) || len(refused) != int(firstID) {
		t.Fatalf("%d ports numbered, %d refused, want %d and %d", len(numbered), len(refused), table.MaxPorts-int(firstID), firstID)
	}
	seen := make(map[uint16]bool)
	for _, p := range numbered {
		if p.ID < firstID || p.ID >= table.MaxPorts || seen[p.ID] {
			t.Fatalf("id %d is out of range or given twice", p.ID)
		}
		seen[p.ID] = true
	}
	again, refused := s.assign(append(numbered[1:], ports[len(ports)-1]))
	if len(refused) != 0 || again[len(again)-1].ID != numbered[0].ID {
		t.Errorf("a freed id is not given again: %d refused, last id %d, want %d", len(refused), again[len(again)-1].ID, numbered[0].ID)
	}
}

func TestIDsOfADamagedSnapshotAreLeftOut(t *testing.T) {
	s := newIDs([]table.Port{
		{ID: 0, Kind: table.PortPod, Ifindex: 5},
		{ID: table.HostPort, Kind: table.PortPod, Ifindex: 6},
		{ID: table.MaxPorts, Kind: table.PortPod, Ifindex: 7},
		{ID: 9, Kind: table.PortPod, Ifindex: 8},
		{ID: 9, Kind: table.PortPod, Ifindex: 9},
	})
	if len(s.of) != 1 {
		t.Errorf("%d ids taken over, want 1", len(s.of))
	}
}
