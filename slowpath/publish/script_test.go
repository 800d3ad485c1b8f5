package publish_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source/dir"
)

// TestScripts runs testdata/*.txtar: what a node publishes for the objects of a script.
//
//	begin [unsynced] [unattached] [wired]   as node n1; wired: with addresses
//	end                             the snapshot file stays
//	synced, attached                what begin left out
//	apply FILE..., delete FILE...   the objects in the files come or go
//	services                        State: what is proxied, and which tier chose
//	endpoints                       State: every endpoint, with the reason when it is not chosen
//	frontends, backends             the snapshot file
//	sets                            the snapshot file: per frontend how much of its address it
//	                                takes, its backends for clients inside | outside | those
//	                                that may keep flows, sources and affinity
//	problems                        State
//	problems all                    the one about ranges among them
//	ranges                          State: the service ranges
//	generation                      of the snapshot file
//	published                       fails when nothing is; ! published the other way round
//	damage                          makes the snapshot file unreadable
//
// Where a file that is wrong cannot come from, [api] holds instead of [folder].
func TestScripts(t *testing.T) {
	runScripts(t, "folder", func(string) feed { return &told{} })
}

// TestScriptsFromTheAPI runs the same scripts with the objects read from an API server, and
// expects the same.
func TestScriptsFromTheAPI(t *testing.T) {
	runScripts(t, "api", func(dir string) feed { return &api{dir: dir} })
}

func runScripts(t *testing.T, source string, by func(dir string) feed) {
	testscript.Run(t, testscript.Params{
		Dir:       "testdata",
		Condition: func(word string) (bool, error) { return word == source, nil },
		Setup: func(env *testscript.Env) error {
			n := &node{path: filepath.Join(env.WorkDir, "snapshot"), feed: by(env.WorkDir), partial: source == "api"}
			env.Values[nodeKey{}] = n
			env.Defer(n.stop)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"begin": do((*node).beginCmd), "end": do((*node).endCmd),
			"synced": do((*node).syncedCmd), "attached": do((*node).attachedCmd),
			"apply": do((*node).applyCmd), "delete": do((*node).deleteCmd),
			"services": do((*node).servicesCmd), "endpoints": do((*node).endpointsCmd),
			"frontends": do((*node).frontendsCmd), "backends": do((*node).backendsCmd),
			"sets":     do((*node).setsCmd),
			"problems": do((*node).problemsCmd), "generation": do((*node).generationCmd),
			"damage": do((*node).damageCmd), "ranges": do((*node).rangesCmd),
			"published": func(ts *testscript.TestScript, neg bool, _ []string) {
				n := ts.Value(nodeKey{}).(*node)
				n.settle(ts)
				if (n.publisher.State() != nil) == neg {
					ts.Fatalf("published: %v", !neg)
				}
			},
		},
	})
}

type nodeKey struct{}

// node is the publisher of a script.
type node struct {
	path      string
	feed      feed
	partial   bool // the feed leaves out what is not proxied
	publisher *publish.Publisher
	cancel    func()
	done      chan error
	problems  map[string][]model.Problem // of files
}

func do(f func(*node, *testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command cannot be negated")
		}
		n := ts.Value(nodeKey{}).(*node)
		f(n, ts, args)
	}
}

func (n *node) beginCmd(ts *testscript.TestScript, args []string) {
	p, err := publish.New(publish.Config{Node: "n1", Path: n.path, Partial: n.partial, Log: slog.New(slog.DiscardHandler)})
	ts.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	n.publisher, n.cancel, n.done, n.problems = p, cancel, make(chan error, 1), map[string][]model.Problem{}
	go func() { n.done <- p.Run(ctx) }()
	ts.Check(n.feed.start(p))
	if !slices.Contains(args, "unsynced") {
		ts.Check(n.feed.all())
	}
	switch {
	case slices.Contains(args, "wired"):
		p.SetAttachments(wired(), nil)
	case !slices.Contains(args, "unattached"):
		p.SetAttachments(model.Attachments{}, nil)
	}
	n.settle(ts)
}

func (n *node) stop() {
	if n.cancel != nil {
		n.feed.stop()
		n.cancel()
		<-n.done
		n.cancel = nil
	}
}

func (n *node) endCmd(*testscript.TestScript, []string) { n.stop() }

func (n *node) syncedCmd(ts *testscript.TestScript, _ []string) {
	ts.Check(n.feed.all())
	n.settle(ts)
}

func (n *node) attachedCmd(ts *testscript.TestScript, _ []string) {
	n.publisher.SetAttachments(model.Attachments{}, nil)
	n.settle(ts)
}

// settle waits until everything is published, or, when it cannot be yet, a moment.
func (n *node) settle(ts *testscript.TestScript) {
	wait := 10 * time.Second
	if n.publisher.State() == nil {
		wait = 100 * time.Millisecond
	}
	for end := time.Now().Add(wait); time.Now().Before(end); {
		changed := n.publisher.Changed()
		if n.publisher.Queued().IsZero() {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Millisecond):
		}
	}
	if wait > time.Second {
		ts.Fatalf("not published after %v", wait)
	}
}

func (n *node) applyCmd(ts *testscript.TestScript, files []string)  { n.change(ts, files, true) }
func (n *node) deleteCmd(ts *testscript.TestScript, files []string) { n.change(ts, files, false) }

func (n *node) change(ts *testscript.TestScript, files []string, apply bool) {
	var objects []dir.Object
	for _, f := range files {
		read, problems := dir.Decode(f, []byte(ts.ReadFile(f)))
		objects = append(objects, read...)
		if n.problems[f] = problems; !apply {
			delete(n.problems, f)
		}
	}
	var all []model.Problem
	for _, ps := range n.problems {
		all = append(all, ps...)
	}
	ts.Check(n.feed.change(objects, apply, all))
	n.settle(ts)
}

// show writes aligned columns, and "none" when there is no row.
func show(ts *testscript.TestScript, rows [][]string) {
	if len(rows) == 0 {
		rows = [][]string{{"none"}}
	}
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	w.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(ts.Stdout(), strings.TrimRight(line, " \n"))
	}
}

func (n *node) servicesCmd(ts *testscript.TestScript, _ []string) {
	var rows [][]string
	n.choices(func(s *model.Service, p *model.ServicePort, fam int, c model.Choice) {
		word := append([]string{c.Tier}, c.Notes...)
		rows = append(rows, []string{s.Name.String(), s.Type, p.Name, fmt.Sprintf("%d/%s", p.Port, p.Protocol), fmt.Sprintf("IPv%d", fam),
			strings.Join(word, ","), fmt.Sprint(len(c.Endpoints))})
	})
	show(ts, rows)
}

func (n *node) endpointsCmd(ts *testscript.TestScript, _ []string) {
	var rows [][]string
	n.choices(func(s *model.Service, p *model.ServicePort, _ int, c model.Choice) {
		for _, e := range c.Endpoints {
			rows = append(rows, []string{s.Name.String(), p.Name, netip.AddrPortFrom(e.Addr, e.Port).String(), "chosen"})
		}
		for _, x := range c.Excluded {
			rows = append(rows, []string{s.Name.String(), p.Name, netip.AddrPortFrom(x.Endpoint.Addr, x.Endpoint.Port).String(), x.Reason})
		}
	})
	show(ts, rows)
}

func (n *node) choices(yield func(*model.Service, *model.ServicePort, int, model.Choice)) {
	for _, s := range n.publisher.State().Services {
		for i := range s.Ports {
			for _, fam := range []int{4, 6} {
				if c, ok := s.Ports[i].Families[fam]; ok {
					yield(s, &s.Ports[i], fam, c.Internal)
				}
			}
		}
	}
}

// problemsCmd leaves out that no service range is known, which most scripts do not declare,
// unless it is asked for all.
func (n *node) problemsCmd(ts *testscript.TestScript, args []string) {
	var rows [][]string
	for _, p := range n.publisher.State().Problems {
		if p.Reason == "NoServiceRanges" && !slices.Contains(args, "all") {
			continue
		}
		rows = append(rows, []string{p.Kind, p.Object, p.Field, p.Reason})
	}
	show(ts, rows)
}

func (n *node) rangesCmd(ts *testscript.TestScript, _ []string) {
	var rows [][]string
	for _, p := range n.publisher.State().Ranges {
		rows = append(rows, []string{p.String()})
	}
	show(ts, rows)
}

func (n *node) snapshot(ts *testscript.TestScript) *table.Snapshot {
	s, err := table.Open(n.path)
	ts.Check(err)
	ts.Defer(func() { s.Close() })
	return s
}

func (n *node) frontendsCmd(ts *testscript.TestScript, _ []string) {
	s := n.snapshot(ts)
	var rows [][]string
	for _, f := range s.Frontends() {
		if isAlias(ts, s, &f) {
			continue
		}
		row := []string{service(f.Addr.Netip(), f.Port, f.Protocol)}
		for _, id := range s.Set(f.Inside) {
			b := s.Backend(id)
			row = append(row, netip.AddrPortFrom(b.Addr.Netip(), b.Port).String())
		}
		if len(row) == 1 {
			row = append(row, []string{"refuse", "drop"}[f.Inside.Empty])
		}
		rows = append(rows, row)
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	show(ts, rows)
}

func (n *node) backendsCmd(ts *testscript.TestScript, _ []string) {
	var rows [][]string
	for _, b := range n.snapshot(ts).Backends() {
		rows = append(rows, []string{service(b.Addr.Netip(), b.Port, b.Protocol), []string{"gone", "serving"}[b.Serving]})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	show(ts, rows)
}

func service(a netip.Addr, port uint16, proto uint8) string {
	return netip.AddrPortFrom(a, port).String() + "/" + model.Protocol(proto).String()
}

func (n *node) generationCmd(ts *testscript.TestScript, _ []string) {
	g := n.snapshot(ts).Generation()
	if g > 1_000_000_000 {
		fmt.Fprintln(ts.Stdout(), "by the clock")
		return
	}
	fmt.Fprintln(ts.Stdout(), g)
}

func (n *node) damageCmd(ts *testscript.TestScript, _ []string) {
	b, err := os.ReadFile(n.path)
	ts.Check(err)
	b[len(b)/2] ^= 1
	ts.Check(os.WriteFile(n.path, b, 0o600))
}
