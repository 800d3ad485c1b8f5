package preflight

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// askFor is how long an agent may take to answer: it is on this machine, and has the answer.
const askFor = 2 * time.Second

// Agent is what the agent of the state directory said.
type Agent struct {
	Absent    bool          // nobody runs there
	Silence   string        // why one that may run did not answer; empty: it did
	Problems  []api.Problem // that it has, in its order
	Simulated bool          // it is that of a demo in memory
}

func askAgent(stateDir string) (a Agent) {
	ctx, done := context.WithTimeout(context.Background(), askFor)
	defer done()
	socket := filepath.Join(stateDir, "agent.sock")
	c := api.NewClient(socket)
	defer c.Close()
	list, err := c.Problems(ctx)
	var nobody *api.AbsentError
	switch {
	case err == nil:
		a.Problems = list.Items
		st, err := c.Status(ctx)
		a.Simulated = err == nil && st.Simulated
	case !errors.As(err, &nobody):
		a.Silence = err.Error()
	case isLocked(filepath.Join(stateDir, "agent.lock")):
		a.Silence = "an agent runs, but nobody listens at " + socket
	default:
		a.Absent = true
	}
	return a
}

// judgeAgent gives each Problem of a running agent a finding of its own. None keeps Lace from
// running.
func judgeAgent(f *Facts) (out []Finding) {
	const check = "problems"
	switch a := &f.Agent; {
	case a.Absent && f.FastpathAlive:
		return []Finding{warn(check, "not known: lace-agent does not run beside the fast path, which goes on with the last tables", "start lace-agent, and look at its log if it ends again")}
	case a.Absent:
		return []Finding{ok(check, "no agent runs that would know any")}
	case a.Silence != "":
		return []Finding{warn(check, "not known: "+a.Silence, "run lace check as root; where that gets no answer either, look into the log of lace-agent, and restart it")}
	case len(a.Problems) == 0:
		return []Finding{ok(check, "none")}
	default:
		for i := range a.Problems {
			out = append(out, OfProblem(Warn, "problem", &a.Problems[i]))
		}
		return out
	}
}

// OfProblem says a Problem in one line: object and field, what is wrong and what to do, and the
// reason, by which pages name it. It is checked at the place of the object, which stands for
// check then. A check that is the object itself, or its file, is not said twice.
func OfProblem(v Verdict, check string, p *api.Problem) Finding {
	about, field := []string{p.Kind, p.Object}, p.Field
	if at := p.Place.String(); at != "" {
		check = at
	}
	if p.Kind == "File" && p.Place.File != "" {
		about, field = nil, strings.TrimPrefix(strings.TrimPrefix(field, p.Place.Item), ".")
	}
	if check == p.Object {
		about = nil
	}
	if field != "" {
		about = append(about, field)
	}
	found := p.Message + " (" + p.Reason + ")"
	if len(about) > 0 {
		found = strings.Join(about, " ") + ": " + found
	}
	return Finding{Verdict: v, Check: check, Found: found, Problem: p}
}
