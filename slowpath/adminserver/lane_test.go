package adminserver

import (
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/xdp"
)

func TestLane(t *testing.T) {
	p := newPlayed(t)
	p.totals, p.kernel = counted()
	p.kernel.Reasons[reason.Established] = xdp.Count{Packets: 70, Bytes: 7000}
	p.kernel.Reasons[reason.Reply] = xdp.Count{Packets: 30, Bytes: 90_000}
	p.kernel.Punts[xdp.CauseMiss] = xdp.Count{Packets: 4, Bytes: 240}
	p.kernel.Punts[xdp.CauseHeader] = xdp.Count{Packets: 1, Bytes: 1500}
	p.contents.Settings.Lane = 1
	backend := netip.MustParseAddrPort("10.244.1.5:8080")
	for _, client := range []string{"10.244.1.8:40000", "10.244.1.8:40001", "10.244.1.8:40002"} {
		p.register(t, netip.MustParseAddrPort(client), backend, netip.MustParseAddrPort(client))
	}
	p.flows.Range(func(f *conntrack.Flow) bool {
		if f.SrcPort == 40002 && !p.flows.SetMode(f, conntrack.ModeOpening) || f.SrcPort != 40002 && !p.flows.InstallPair(f) {
			t.Error("not installed")
		}
		return true
	})
	c := ask(t, p)
	got, err := c.Lane(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Punts) != xdp.Causes-1 {
		t.Errorf("%d causes, want all %d", len(got.Punts), xdp.Causes-1)
	}
	punts := map[string]api.Amount{}
	for _, punt := range got.Punts {
		if punt.Help == "" {
			t.Errorf("%s has no help", punt.Cause)
		}
		if punt.Packets > 0 {
			punts[punt.Cause] = punt.Amount
		}
	}
	if diff := cmp.Diff(map[string]api.Amount{"miss": {Packets: 4, Bytes: 240}, "header": {Packets: 1, Bytes: 1500}}, punts); diff != "" {
		t.Errorf("punts (-want +got):\n%s", diff)
	}
	want := api.Lane{
		On: true, Flows: 3, Installed: 2, Open: 3, OpenLane: 2, Hits: api.Amount{Packets: 100, Bytes: 97_000},
		Drops: []api.Drop{{Reason: "spoofed-source", Help: reason.SpoofedSource.Help(), Where: "kernel", Class: "drop", Packets: 6, Bytes: 400}},
	}
	got.Punts = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lane (-want +got):\n%s", diff)
	}
	flows, err := c.Flows(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range flows.Items {
		if want := map[bool]string{true: "go", false: "lane"}[strings.HasSuffix(f.Client, ":40002")]; f.Mode != want {
			t.Errorf("%s is moved by %s, want %s", f.Client, f.Mode, want)
		}
	}
}

// What is not there is said, and does not hide the rest.
func TestLaneWithoutFastpath(t *testing.T) {
	p := newPlayed(t)
	p.noFlows = errNoTable
	got, err := ask(t, p).Lane(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Message != errNoTable.Error() || got.Hits != (api.Amount{}) {
		t.Errorf("%+v, want the message and no counts", got)
	}
}

func TestThePageSaysWhatTheCommandSays(t *testing.T) {
	const page = "../../docs/reference/lane.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([^|]+) \\|")
	for _, m := range row.FindAllStringSubmatch(string(b), -1) {
		described[m[1]] = strings.TrimSpace(m[2])
	}
	declared := map[string]string{}
	for cause := xdp.Cause(1); int(cause) < xdp.Causes; cause++ {
		declared[cause.String()] = causes[cause]
	}
	if diff := cmp.Diff(described, declared); diff != "" {
		t.Errorf("%s against the code (-page +code):\n%s", page, diff)
	}
}
