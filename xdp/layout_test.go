package xdp

import (
	"reflect"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/xdp/bpf"
)

// TestLayout: the records here lie as those of the C sources do, field by field.
func TestLayout(t *testing.T) {
	spec, err := bpf.LoadLace()
	must(t, err)
	for name, c := range map[string]struct {
		c    btf.Type
		goes any
	}{
		"settings": {spec.Maps["settings"].Value, settings{}},
		"port":     {spec.Maps["ports"].Value, port{}},
		"device":   {spec.Maps["devices"].Value, device{}},
		"claim":    {spec.Maps["claims"].Key, claim{}},
		"source":   {spec.Maps["sources"].Key, source{}},
		"count":    {spec.Maps["counters"].Value, Count{}},
		"allowed":  {spec.Maps["police"].Value, allowances{}},
		"buckets":  {spec.Maps["police_ports"].Value, buckets{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.c.(*btf.Struct)
			var want, got [][2]int
			for _, m := range s.Members {
				size, err := btf.Sizeof(m.Type)
				must(t, err)
				want = append(want, [2]int{int(m.Offset.Bytes()), size})
			}
			g := reflect.TypeOf(c.goes)
			for i := range g.NumField() {
				got = append(got, [2]int{int(g.Field(i).Offset), int(g.Field(i).Type.Size())})
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("offset and size of the fields of %s (-C +Go)\n%s", name, d)
			}
			if int(s.Size) != int(g.Size()) {
				t.Errorf("%s is %d bytes in C, %d in Go", name, s.Size, g.Size())
			}
		})
	}
}

// TestConstants: numbers that are written down on both sides.
func TestConstants(t *testing.T) {
	spec, err := bpf.LoadLace()
	must(t, err)
	for what, c := range map[string][2]int{
		"bytes of a flow table slot": {int(spec.Maps["flows"].ValueSize), conntrack.SlotSize},
		"bytes of a tag record":      {int(spec.Maps["flow_tags"].ValueSize), conntrack.TagSize},
		"ports":                      {int(spec.Maps["ports"].MaxEntries), table.MaxPorts},
		"ports that are policed":     {int(spec.Maps["police_ports"].MaxEntries), table.MaxPorts},
		"queues":                     {int(spec.Maps["sockets"].MaxEntries), MaxQueues},
		"frontend ids":               {int(spec.Maps["frontend_gens"].MaxEntries) * 2, FrontendIDs},
		"backend ids":                {int(spec.Maps["backend_gens"].MaxEntries) * 2, BackendIDs},
		"target ids":                 {int(spec.Maps["target_gens"].MaxEntries) * 2, table.MaxPorts},
		"bytes of the claim filter":  {int(spec.Maps["claim_filter"].ValueSize), len(filter{}) * 8},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d in C, %d in Go", what, c[0], c[1])
		}
	}
	if last, max := countCause+Causes-1, int(spec.Maps["counters"].MaxEntries); last >= max {
		t.Errorf("counter %d is beyond the map of %d", last, max)
	}
}
