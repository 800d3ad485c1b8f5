package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/lane"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/xdp"
)

// recorder is a kernel that writes down what it is told, and when which tables are in use.
type recorder struct {
	tables *tables
	calls  []string
	fails  error
}

func (r *recorder) note(what string, n int) error {
	generation := uint64(0)
	if s := r.tables.current.Load(); s != nil {
		generation = s.Generation()
	}
	r.calls = append(r.calls, fmt.Sprintf("generation %d: %s %d", generation, what, n))
	return r.fails
}

func (r *recorder) SyncGenerations(s *table.Snapshot) error {
	return r.note("generations of", int(s.Generation()))
}

func (r *recorder) SetLane(on bool) error {
	if on {
		return r.note("lane", 1)
	}
	return r.note("lane", 0)
}

func (r *recorder) AddSources(a []table.Address) error  { return r.note("add sources", len(a)) }
func (r *recorder) SyncPorts(p []table.Port) error      { return r.note("ports", len(p)) }
func (r *recorder) SyncSources(a []table.Address) error { return r.note("sources", len(a)) }
func (r *recorder) SyncClaims(c []xdp.Claim) error      { return r.note("claims", len(c)) }
func (r *recorder) TrimClaims(c []xdp.Claim) error      { return r.note("trim claims to", len(c)) }
func (r *recorder) SyncAliases(a []xdp.Alias) error     { return r.note("aliases", len(a)) }
func (r *recorder) TrimAliases(a []xdp.Alias) error     { return r.note("trim aliases to", len(a)) }

func (r *recorder) WidenBackends(a []packet.Addr) error { return r.note("backends and", len(a)) }
func (r *recorder) SetBackends(a []packet.Addr) error   { return r.note("backends", len(a)) }

type bound struct{ max int }

func (b *bound) SetHalfOpenMax(n int) { b.max = n }

// reader holds on to tables for a number of looks.
type reader struct{ looks int }

func (r *reader) Uses(*table.Snapshot) bool { r.looks--; return r.looks >= 0 }

func newTables(t *testing.T, log *transcript) (*tables, *recorder) {
	t.Helper()
	dir := t.TempDir()
	file, err := counter.Create(filepath.Join(dir, counterFile), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	tb := &tables{
		path: filepath.Join(dir, snapshotFile), flows: &bound{}, counters: file,
		log: slog.New(slog.NewTextHandler(log, nil)),
	}
	r := &recorder{tables: tb}
	tb.kernel = r
	tb.backends = backends{kernel: r, flows: noFlows{}}
	t.Cleanup(func() {
		if err := tb.close(); err != nil {
			t.Error(err)
		}
	})
	return tb, r
}

// vipTables are tables with so many VIPs.
func vipTables(generation uint64, vips int) *table.Contents {
	c := &table.Contents{Generation: generation, Settings: table.DefaultSettings()}
	c.Settings.HalfOpenMax = uint32(100 + generation)
	for i := range vips {
		c.Frontends = append(c.Frontends, table.Frontend{
			ID: uint32(i + 1), Port: 80, Protocol: packet.ProtocolTCP,
			Addr: packet.AddrFrom(netip.AddrFrom4([4]byte{10, 96, 0, byte(i)})),
		})
	}
	return c
}

func write(t *testing.T, path string, c *table.Contents) {
	t.Helper()
	b, err := table.Encode(nil, c)
	if err == nil {
		err = table.WriteFile(path, b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestOrderOfANewSnapshot(t *testing.T) {
	log := &transcript{}
	tb, r := newTables(t, log)
	write(t, tb.path, vipTables(1, 2))
	tb.refresh(t.Context())
	second := vipTables(2, 1)
	second.Settings.Lane = 1 - second.Settings.Lane
	write(t, tb.path, second)
	tb.refresh(t.Context())
	tb.refresh(t.Context()) // the same file again: nothing to do
	first := int(1 - second.Settings.Lane)
	want := []string{
		// Claims that go, go while the old tables are in use; those that come, come last.
		// The lane is told what is void as soon as Go knows better, and before ports change.
		// A port's addresses are there before it is attached to, and until it is let go.
		// Sockets are sent to no alias that goes before anything else.
		"generation 0: trim aliases to 0", "generation 0: trim claims to 2", "generation 0: backends and 0", "generation 1: generations of 1", fmt.Sprint("generation 1: lane ", first),
		"generation 1: add sources 0", "generation 1: ports 0", "generation 1: sources 0", "generation 1: claims 2", "generation 1: aliases 0",
		"generation 1: trim aliases to 0", "generation 1: trim claims to 1", "generation 1: backends and 0", "generation 2: generations of 2", fmt.Sprint("generation 2: lane ", 1-first),
		"generation 2: add sources 0", "generation 2: ports 0", "generation 2: sources 0", "generation 2: claims 1", "generation 2: aliases 0",
	}
	if diff := cmp.Diff(want, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got := tb.flows.(*bound).max; got != 102 {
		t.Errorf("half-open bound %d, want 102", got)
	}
}

func TestAnOldSnapshotIsClosedWhenNobodyReadsIt(t *testing.T) {
	tb, _ := newTables(t, &transcript{})
	slow := &reader{looks: 5}
	tb.users = []user{slow}
	write(t, tb.path, vipTables(1, 1))
	tb.refresh(t.Context())
	write(t, tb.path, vipTables(2, 1))
	tb.refresh(t.Context())
	if slow.looks >= 0 {
		t.Errorf("the reader was asked until it had %d looks left, want it asked until it let go", slow.looks)
	}
}

func TestAReaderThatNeverLetsGoDoesNotHoldUpTheEnd(t *testing.T) {
	tb, _ := newTables(t, &transcript{})
	tb.users = []user{&reader{looks: 1 << 30}}
	write(t, tb.path, vipTables(1, 1))
	tb.refresh(t.Context())
	write(t, tb.path, vipTables(2, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tb.refresh(ctx)
	if got := tb.current.Load().Generation(); got != 2 {
		t.Errorf("generation %d, want 2", got)
	}
}

func TestRefusedSnapshots(t *testing.T) {
	log := &transcript{}
	tb, r := newTables(t, log)
	tb.refresh(t.Context())
	tb.refresh(t.Context())
	if n := strings.Count(log.String(), "no snapshot yet"); n != 1 {
		t.Errorf("a missing file is spoken of %d times, want once:\n%s", n, log)
	}
	if err := replace(tb.path, []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	tb.refresh(t.Context())
	tb.refresh(t.Context())
	if n := strings.Count(log.String(), "snapshot refused"); n != 1 {
		t.Errorf("a damaged file is refused %d times in the log, want once:\n%s", n, log)
	}
	write(t, tb.path, vipTables(7, 1))
	tb.refresh(t.Context())
	before := len(r.calls)
	if err := replace(tb.path, []byte("garbage again")); err != nil {
		t.Fatal(err)
	}
	tb.refresh(t.Context())
	if got := tb.current.Load().Generation(); got != 7 {
		t.Errorf("generation %d in use, want the last good one, 7", got)
	}
	if len(r.calls) != before {
		t.Errorf("a refused file reached the kernel: %v", r.calls[before:])
	}
}

func TestAKernelThatRefusesIsAskedAgainAndSpokenOfOnce(t *testing.T) {
	log := &transcript{}
	tb, r := newTables(t, log)
	r.fails = errors.New("no such device")
	write(t, tb.path, vipTables(1, 1))
	tb.refresh(t.Context())
	for range 3 {
		tb.reconcile()
	}
	if n := strings.Count(log.String(), "could not be brought in line"); n != 1 {
		t.Errorf("spoken of %d times, want once:\n%s", n, log)
	}
	r.fails = nil
	tb.reconcile()
	if !strings.Contains(log.String(), "in line again") {
		t.Errorf("the end of the trouble is not in the log:\n%s", log)
	}
	if got := tb.current.Load().Generation(); got != 1 {
		t.Errorf("generation %d, want 1 in use all the while", got)
	}
}

// TestIDsOfTheLane: Go hands over what the kernel has room for, and no more.
func TestIDsOfTheLane(t *testing.T) {
	if lane.FrontendIDs != xdp.FrontendIDs || lane.BackendIDs != xdp.BackendIDs {
		t.Errorf("the lane takes ids below %d and %d, the kernel has room for %d and %d",
			lane.FrontendIDs, lane.BackendIDs, xdp.FrontendIDs, xdp.BackendIDs)
	}
}
