package publish

import (
	"net/netip"
	"slices"
	"time"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/fastpath/table"
)

// write publishes the tables if they differ from the last ones, and returns the State
// that holds now.
func (w *work) write() (*State, error) {
	next := &State{
		Generation: w.generation, Published: w.published, Bytes: w.bytes,
		Node: w.node, Ranges: w.ranges, Services: w.services, Attachments: w.attached.attachments,
	}
	if w.compiler.Changed() || w.unwritten {
		if err := w.writeFile(next); err != nil {
			return nil, err
		}
	} else {
		w.config.Coming(next)
		w.latency.forget()
	}
	next.External, next.Lost, next.Problems = w.compiler.External(), w.compiler.Lost(), w.allProblems()
	if w.resolved {
		next.Unanswered = w.config.At.Unanswered(w.node, &w.attached.attachments)
	}
	return next, nil
}

// writeFile writes the snapshot of the next generation. A number is used up by a file
// that was written, not by an attempt.
func (w *work) writeFile(next *State) error {
	w.unwritten = true
	if err := w.config.Taken(); err != nil {
		return err
	}
	b, _, err := w.compiler.Snapshot(w.generation+1, time.Now())
	if err != nil {
		return err
	}
	coming := *next
	coming.Generation++
	w.config.Coming(&coming)
	if err := table.WriteFile(w.config.Path, b); err != nil {
		return err
	}
	w.unwritten = false
	if w.mark, err = markOf(w.config.Path); err != nil { // gone already: the mark of no file at all
		w.mark = mark{inode: ^uint64(0)}
	}
	w.generation++
	next.Generation, next.Published, next.Bytes = w.generation, time.Now(), len(b)
	w.published, w.bytes = next.Published, next.Bytes
	told := w.latency.observe(next.Published, w.config.Latency)
	w.config.Written(Publication{Generation: w.generation, Began: w.began, Endpoints: told})
	return nil
}

// failed is the State of before with a Problem that says why it stays.
func (w *work) failed(was *State, err error) *State {
	next := *was
	next.Problems = w.withFailure(err)
	return &next
}

// withFailure is every Problem there is, and why nothing new is published.
func (w *work) withFailure(err error) []model.Problem {
	return Sorted(append(w.allProblems(), model.Problem{
		Kind: "File", Object: w.config.Path, Reason: "NotPublished",
		Message: "the snapshot could not be published, and the last one stays in use: " + err.Error() + "; it is tried again every second",
	}))
}

// outside are the Problems of ClusterIPs in no service range, but for those that the Service
// does not have: one mistake is one Problem. One that endpoints have as well is theirs.
func (w *work) outside() (out []model.Problem) {
	if len(w.strays) == 0 {
		return nil
	}
	type claimed struct {
		service model.Name
		addr    netip.Addr
	}
	lost := map[claimed]bool{}
	for place := range w.compiler.Lost() {
		lost[claimed{place.Service, place.Addr}] = true
	}
	looping := w.compiler.Looping()
	for name, strays := range w.strays {
		for _, s := range strays {
			if lost[claimed{name, s.Addr}] {
				continue
			}
			p := s.Problem
			if of, is := looping[compile.Holding{Service: name, Addr: s.Addr}]; is {
				p = resolve.OfEndpoint(s, of, w.ranges)
			}
			out = append(out, p)
		}
	}
	return out
}

// allProblems gathers every Problem there is.
func (w *work) allProblems() []model.Problem {
	out := slices.Concat(w.sourceProblems, w.hereProblems, w.rangeProblems, w.compiler.Problems())
	if w.attached != nil {
		out = append(out, w.attached.problems...)
	}
	if w.resolved {
		out = append(out, w.objects.NodesMissing(w.config.Node)...)
		out = append(out, w.objects.NodePortsUnanswered(w.config.At, w.node, &w.attached.attachments, w.services)...)
	}
	for _, ps := range w.nodeProblems {
		out = append(out, ps...)
	}
	for _, ps := range w.problems {
		out = append(out, ps...)
	}
	out = append(out, w.outside()...)
	if w.resolved {
		out = append(out, resolve.Unranged(w.config.Node, w.services, w.ranges)...)
	}
	return Sorted(out)
}
