package acts

import (
	"context"
	"fmt"
	"time"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

// scaleSteps are numbers of endpoints, after the three of the beginning.
var scaleSteps = []int{1, 0, 2}

// linger is how long each step lasts once it is in use.
const linger = 300 * time.Millisecond

// step is the time during which one number of endpoints was being or had been programmed.
type step struct {
	size int
	Programmed
	until time.Time // the next change was saved
}

// scale changes the number of endpoints while clients connect. With none, every attempt
// must be refused at once; otherwise every one must be answered, and by an endpoint that
// is there.
func scale(ctx context.Context, s *scene) (string, error) {
	var running []Attempts
	var names []string
	for _, c := range s.Clients() {
		call := s.call("tcp")
		call.Timeout = 5 * time.Second
		a, err := s.StartAttempts(ctx, c.Name, traffic.Burst{Request: call, Every: 10 * time.Millisecond, Parallel: 64})
		if err != nil {
			return "", err
		}
		running, names = append(running, a), append(names, c.Name)
	}
	steps, played := playSteps(ctx, s)
	tally := scaleTally{}
	for i, a := range running {
		answers, err := a.Stop(context.WithoutCancel(ctx))
		if err != nil {
			return "", err
		}
		for _, answer := range answers {
			if err := tally.judge(steps, s.Web(), answer); err != nil && played == nil {
				played = fmt.Errorf("%s: %w", names[i], err)
			}
		}
	}
	if played != nil {
		return "", played
	}
	if tally.refused == 0 || tally.answered == 0 {
		return "", fmt.Errorf("%d answered, %d refused: the act saw nothing", tally.answered, tally.refused)
	}
	return fmt.Sprintf("%d answered, %d refused at 0 endpoints (slowest after %s), 0 failed; programmed in %s at most",
		tally.answered, tally.refused, milliseconds(tally.slowest), milliseconds(slowestStep(steps))), nil
}

func playSteps(ctx context.Context, s *scene) ([]step, error) {
	if err := pause(ctx, linger); err != nil {
		return nil, err
	}
	var steps []step
	for _, size := range scaleSteps {
		p, err := s.setWeb(ctx, s.Web()[:size])
		if err != nil {
			return steps, err
		}
		if n := len(steps); n > 0 {
			steps[n-1].until = p.Saved
		}
		steps = append(steps, step{size: size, Programmed: p})
		if err := pause(ctx, linger); err != nil {
			return steps, err
		}
	}
	steps[len(steps)-1].until = time.Now()
	return steps, nil
}

func slowestStep(steps []step) (d time.Duration) {
	for _, st := range steps {
		d = max(d, st.Took())
	}
	return d
}

type scaleTally struct {
	answered, refused int
	slowest           time.Duration // refusal
}

// refusedWithin is how soon a client must know that there is nobody: before it repeats
// its first packet (RFC 6298, section 2), so that the first one was answered. How long it
// took is in the act's line.
const refusedWithin = time.Second

// judge holds one attempt against the step in which it was made.
func (t *scaleTally) judge(steps []step, web []manifests.Endpoint, a traffic.Answer) error {
	empty := false   // nobody was there all the time
	emptied := false // nobody was there some of the time
	for _, st := range steps {
		end := a.Start.Add(a.Took)
		if st.size == 0 && end.After(st.Saved) && a.Start.Before(st.until.Add(slowestStep(steps))) {
			emptied = true
			empty = a.Start.After(st.InUse) && end.Before(st.until)
		}
		if st.size > 0 && a.Start.After(st.InUse) && end.Before(st.until) && a.Outcome == traffic.OK && !among(web[:st.size], a.Server) {
			return fmt.Errorf("with %d endpoints, answered by %s, which is not one of them", st.size, a.Server)
		}
	}
	switch {
	case a.Outcome == traffic.OK && empty:
		return fmt.Errorf("answered by %s while there was no endpoint", a.Server)
	case a.Outcome == traffic.OK:
		t.answered++
	case a.Outcome == traffic.Refused && emptied:
		t.refused++
		if empty {
			t.slowest = max(t.slowest, a.Took)
		}
		if empty && a.Took > refusedWithin {
			return fmt.Errorf("refused only after %s", milliseconds(a.Took))
		}
	default:
		return fmt.Errorf("failed: %s", a)
	}
	return nil
}

func among(endpoints []manifests.Endpoint, name string) bool {
	for _, e := range endpoints {
		if e.Pod == name {
			return true
		}
	}
	return false
}
