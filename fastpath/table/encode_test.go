package table_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

func TestEncodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*table.Contents)
		want   string // part of the message
	}{
		{"port id 0", func(c *table.Contents) { c.Ports[2].ID = 0 }, "port 0 (veth3): id 0 is outside 1 to 4095"},
		{"port id above the bound", func(c *table.Contents) { c.Ports[2].ID = 4096 }, "port 4096 (veth3): id 4096 is outside"},
		{"port without kind", func(c *table.Contents) { c.Ports[2].Kind = 0 }, "port 3 (veth3): kind 0"},
		{"a pod as port 1", func(c *table.Contents) { c.Ports[0].Kind = table.PortPod }, "port 1 (lace0): id 1 with kind 2"},
		{"the host under another id", func(c *table.Contents) { c.Ports[2].Kind = table.PortHost }, "port 3 (veth3): id 3 with kind 1"},
		{"port without MTU", func(c *table.Contents) { c.Ports[2].MTU = 0 }, "port 3 (veth3): MTU 0"},
		{"port in a network beyond the key", func(c *table.Contents) { c.Ports[2].Network = 1 << 22 }, "network 4194304 is above"},
		{"device name that leaves its directory", func(c *table.Contents) { copy(c.Ports[2].Name[:], "../x\x00") }, "does not allow"},
		{"device name that is a directory", func(c *table.Contents) { c.Ports[2].Name = [16]byte{'.', '.'} }, "not one the kernel allows"},
		{"device name without end", func(c *table.Contents) { copy(c.Ports[2].Name[:], "0123456789abcdef") }, "not closed"},
		{"device name with a rest behind it", func(c *table.Contents) { c.Ports[2].Name[15] = 'x' }, "followed by byte"},
		{"two ports with one id", func(c *table.Contents) { c.Ports[3].ID = 3 }, "port 3 (veth4): id is also that of port 3 (veth3)"},

		{"frontend id 0", func(c *table.Contents) { c.Frontends[0].ID = 0 }, "frontend 10.96.0.10:80/TCP in network 0 (id 0): id is 0"},
		{"frontend port 0", func(c *table.Contents) { c.Frontends[0].Port = 0 }, "10.96.0.10:0/TCP in network 0 (id 11): port is 0"},
		{"frontend of an unknown protocol", func(c *table.Contents) { c.Frontends[0].Protocol = 1 }, "protocol 1 is none of"},
		{"frontend in a network beyond the key", func(c *table.Contents) { c.Frontends[0].Network = 1 << 22 }, "network 4194304"},
		{"two frontends with one id", func(c *table.Contents) { c.Frontends[2].ID = 11 }, "frontend [fd00:10:96::10]:80/TCP in network 0 (id 11): id is also that of frontend 10.96.0.10:80/TCP"},
		{"two frontends with one key", func(c *table.Contents) { c.Frontends[3].Network = 0 }, "frontend 10.96.0.10:80/TCP in network 0 (id 14) is there twice, the other is"},
		{"a set past the list", func(c *table.Contents) { c.Frontends[0].Inside.Count = 4 }, "(id 11): set inside: 4 backends from position 0 on run past the list of 3"},
		{"a set that wraps around", func(c *table.Contents) { c.Frontends[0].Outside = table.Set{First: 2, Count: 1<<32 - 1} }, "set outside: 4294967295 backends"},
		{"a set with an unknown choice for empty", func(c *table.Contents) { c.Frontends[1].Inside.Empty = 2 }, "(id 12): set inside: what to do when empty is 2"},
		{"a set with a backend of the other family", func(c *table.Contents) { c.Frontends[0].Inside = table.Set{First: 1, Count: 2} }, "backend [fd00:10:244:1::3]:8080/TCP in network 0 (id 23) has another family or protocol"},
		{"a set that begins with one", func(c *table.Contents) { c.Frontends[0].Inside = table.Set{First: 2, Count: 1} }, "(id 23) has another family or protocol"},
		{"a set with a backend of another protocol", func(c *table.Contents) { c.Backends[1].Protocol = packet.ProtocolUDP }, "backend 10.244.2.3:8080/UDP in network 0 (id 22) has another family or protocol"},
		{"a set with a backend that is not there", func(c *table.Contents) { c.BackendIDs[1] = 99 }, "backend id 99 at position 1"},

		{"a flag that nobody knows", func(c *table.Contents) { c.Frontends[0].Flags = 4 }, "(id 11): flags are 0x4, of which 0x4"},
		{"affinity beyond a day", func(c *table.Contents) { c.Frontends[4].Affinity = 86401 }, "(id 15): affinity is 86401 s"},
		{"affinity of no session", func(c *table.Contents) { c.Frontends[4].Session = 0 }, "(id 15): affinity of 10800 s without a session"},
		{"a keep set past the list", func(c *table.Contents) { c.Frontends[4].Keep.Count = 4 }, "(id 15): backends that keep flows: 4 backends from position 0 on run past"},
		{"a keep set with a backend of the other family", func(c *table.Contents) { c.Frontends[4].Keep.Count = 3 }, "(id 23) has another family or protocol"},
		{"sources of a frontend that is not restricted", func(c *table.Contents) { c.Frontends[5].Flags = 0 }, "(id 16): 2 source ranges for a frontend that is not restricted"},
		{"sources past the list", func(c *table.Contents) { c.Frontends[5].Sources.Count = 3 }, "(id 16): 3 source ranges from position 1 on run past the list of 3"},
		{"sources of the other family", func(c *table.Contents) { c.Frontends[5].Sources = table.Run{First: 0, Count: 1} }, "(id 16): its source ranges are of another family"},
		{"sources of two families", func(c *table.Contents) { c.Frontends[6].Sources.Count = 2 }, "(id 17): source range at position 1 does not come behind"},
		{"sources out of order", func(c *table.Contents) { c.Ranges[1], c.Ranges[2] = c.Ranges[2], c.Ranges[1] }, "(id 16): source range at position 2 does not come behind"},
		{"a source range backwards", func(c *table.Contents) { r := &c.Ranges[1]; r.First, r.Last = r.Last, r.First }, "source range at position 1, 10.244.255.255 to 10.244.0.0, is none"},

		{"backend id 0", func(c *table.Contents) { c.Backends[0].ID = 0 }, "backend 10.244.1.3:8080/TCP in network 0 (id 0): id is 0"},
		{"backend that half serves", func(c *table.Contents) { c.Backends[0].Serving = 2 }, "serving is 2"},
		{"two backends with one id", func(c *table.Contents) { c.Backends[1].ID = 21 }, "backend 10.244.2.3:8080/TCP in network 0 (id 21): id is also that of"},

		{"address behind an unknown port", func(c *table.Contents) { c.Addresses[2].Port = 9 }, "address 10.244.1.3 in network 0: port 9 is not among the ports"},
		{"address in a network beyond the key", func(c *table.Contents) { c.Addresses[2].Network = 1 << 22 }, "network 4194304"},
		{"an address behind two ports", func(c *table.Contents) { c.Addresses[4].Network = 0 }, "address 10.244.1.3 in network 0 is there twice, behind port 3 and port 4"},

		{"route through an unknown port", func(c *table.Contents) { c.Routes[1].Port = 9 }, "route 10.244.2.0/24 in network 0: port 9 is not among the ports"},
		{"route longer than an address", func(c *table.Contents) { c.Routes[1].Bits = 129 }, "prefix length 129"},
		{"IPv4 route that is not v4-mapped", func(c *table.Contents) { c.Routes[1].Bits = 24 }, "prefix length 24"},
		{"route with bits behind its length", func(c *table.Contents) { c.Routes[1].Bits = 112 }, "bits behind the prefix length"},
		{"route in a network beyond the key", func(c *table.Contents) { c.Routes[1].Network = 1 << 22 }, "network 4194304"},
		{"two routes for one prefix", func(c *table.Contents) { c.Routes[0] = c.Routes[1]; c.Routes[0].Port = 3 }, "route 10.244.2.0/24 in network 0 is there twice, through port 2 and port 3"},

		{"lane neither on nor off", func(c *table.Contents) { c.Settings.Lane = 2 }, "settings: lane is 2"},
		{"no half-open flows", func(c *table.Contents) { c.Settings.HalfOpenMax = 0 }, "settings: half-open maximum"},
		{"source ports backwards", func(c *table.Contents) { c.Settings.SourcePortFirst = 65535; c.Settings.SourcePortLast = 1 }, "settings: source ports 65535 to 1"},
		{"source port 0", func(c *table.Contents) { c.Settings.SourcePortFirst = 0 }, "settings: source ports 0"},
		{"IPv6 as the node's IPv4 address", func(c *table.Contents) { c.Settings.NodeAddr4 = addr("fd30::11") }, "settings: node's IPv4 address fd30::11"},
		{"IPv4 as the node's IPv6 address", func(c *table.Contents) { c.Settings.NodeAddr6 = addr("10.0.0.1") }, "settings: node's IPv6 address 10.0.0.1"},
		{"no timeout", func(c *table.Contents) { c.Settings.Timeouts.UDP = 0 }, "settings: timeout of UDP is 0 ns"},
	} {
		contents := small()
		c.change(contents)
		_, err := table.Encode(nil, contents)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestEncodeReusesItsBuffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	b := encode(t, many(100, rng))
	first := &b[0]
	for _, c := range []*table.Contents{small(), many(90, rng), small()} {
		var err error
		if b, err = table.Encode(b, c); err != nil {
			t.Fatal(err)
		}
		if &b[0] != first {
			t.Error("a buffer that was large enough was not used again")
		}
		s, err := table.Load(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*c, s.Contents(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("left-overs of the file before (-want +got):\n%s", diff)
		}
	}
}

func TestEncodeIntoUnalignedBuffer(t *testing.T) {
	b, err := table.Encode(make([]byte, 1<<20)[1:], small())
	if err != nil {
		t.Fatal(err)
	}
	if !table.Aligned(b) {
		t.Error("the file is not aligned, so its records would be written where they may not lie")
	}
	if _, err := table.Load(b); err != nil {
		t.Error(err)
	}
}

func TestEachFileHasItsOwnHashKeys(t *testing.T) {
	a, b := encode(t, small()), encode(t, small())
	if cmp.Equal(a, b) {
		t.Error("two files of the same contents are equal, so their hash keys are")
	}
}

func TestDeviceNames(t *testing.T) {
	var p table.Port
	for name, ok := range map[string]bool{
		"lace0": true, "123456789012345": true, "1234567890123456": false, "a/b": false,
		"a:b": false, "a b": false, "..": false, "": true,
		"ev\x1b[2Jil": true, "b\xff\x7f\x01": true, "a\nb": false, "a\vb": false, "a\xa0b": false,
	} {
		err := p.SetDevice(name)
		if (err == nil) != ok {
			t.Errorf("SetDevice(%q) = %v", name, err)
		}
		if ok && p.Device() != name {
			t.Errorf("Device() = %q, want %q", p.Device(), name)
		}
	}
}
