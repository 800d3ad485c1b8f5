package publish_test

import (
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// wired is a node with two addresses of each family, one pod and one uplink.
func wired() model.Attachments {
	list := func(texts ...string) (out []netip.Addr) {
		for _, s := range texts {
			out = append(out, netip.MustParseAddr(s))
		}
		return out
	}
	return model.Attachments{
		Ports: []model.Port{
			{ID: 1, Kind: model.PortHost, Device: "lace0", Ifindex: 2, MTU: 1500, Addresses: list("172.30.0.11", "192.0.2.11", "fd30::11", "2001:db8::11")},
			{ID: 2, Kind: model.PortPod, Device: "veth-a", Ifindex: 10, MTU: 1500, Addresses: list("10.244.1.1")},
			{ID: 3, Kind: model.PortUplink, Device: "eth0", Ifindex: 3, MTU: 1500},
		},
		Routes: []model.Route{{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Port: 3}, {Prefix: netip.MustParsePrefix("::/0"), Port: 3}},
		Node4:  list("172.30.0.11")[0], Node6: list("fd30::11")[0],
	}
}

func (n *node) setsCmd(ts *testscript.TestScript, _ []string) {
	s := n.snapshot(ts)
	var rows [][]string
	for i := range s.Frontends() {
		f := &s.Frontends()[i]
		if isAlias(ts, s, f) {
			continue
		}
		row := []string{service(f.Addr.Netip(), f.Port, f.Protocol), "whole",
			setText(s, s.Set(f.Inside), f.Inside.Empty), "|", setText(s, s.Set(f.Outside), f.Outside.Empty), "|", setText(s, s.Keep(f), 0)}
		if f.Flags&table.Narrow != 0 {
			row[1] = "port"
		}
		if f.Affinity > 0 {
			row = append(row, fmt.Sprintf("affinity %ds", f.Affinity))
		}
		if f.Flags&table.Restricted != 0 {
			text := "from nobody"
			for i, r := range s.Sources(f) {
				text = []string{"from ", text + ","}[min(i, 1)] + fmt.Sprintf("%s-%s", r.First, r.Last)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	show(ts, rows)
}

func setText(s *table.Snapshot, ids []uint32, empty table.Empty) string {
	var words []string
	for _, id := range ids {
		b := s.Backend(id)
		words = append(words, netip.AddrPortFrom(b.Addr.Netip(), b.Port).String())
	}
	if len(words) == 0 {
		return []string{"refuse", "drop"}[empty]
	}
	return strings.Join(words, " ")
}

// isAlias reports whether a frontend stands for another one, and holds it to giving the same.
func isAlias(ts *testscript.TestScript, s *table.Snapshot, f *table.Frontend) bool {
	of := s.FrontendByID(f.AliasOf)
	if of == nil {
		return false
	}
	if own := s.Address(0, &of.Addr); own == nil || own.Port != table.HostPort {
		ts.Fatalf("%v stands for %v, which is at no address of the node", f, of)
	}
	gives := func(f *table.Frontend) string {
		return fmt.Sprint(s.Set(f.Inside), f.Inside.Empty, s.Set(f.Outside), f.Outside.Empty, s.Keep(f), s.Sources(f), f.Affinity, f.Session)
	}
	if gives(f) != gives(of) {
		ts.Fatalf("%v gives %s, and %v, for which it stands, %s", f, gives(f), of, gives(of))
	}
	return true
}
