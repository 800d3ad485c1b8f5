package acts

import (
	"context"
	"fmt"
	"time"
)

// act is one promise.
type act struct {
	name string
	// play shows it over one family and returns what was seen. An error is a promise that
	// was not kept.
	play  func(context.Context, *scene) (string, error)
	once  bool // it does not depend on the family
	rests bool // the acts that follow cannot be played when it fails
}

// program is the order of the acts.
var program = []act{
	{name: "ready", play: ready, once: true, rests: true},
	{name: "one request", play: oneRequest, rests: true},
	{name: "even shares", play: evenShares},
	{name: "scale 3 → 1 → 0 → 2", play: scale},
	{name: "graceful drain", play: drain},
	{name: "kill the fast path", play: killFastpath},
	{name: "kill the agent", play: killAgent},
	{name: "flood", play: flood, once: true},
}

// Line is the outcome of one act over one family.
type Line struct {
	Act    string
	Family int // 4 or 6; 0 where the act does not depend on it
	Saw    string
	Err    error // nil: the promise was kept
	Took   time.Duration
}

// Passed says that the promise was kept.
func (l Line) Passed() bool { return l.Err == nil }

// FamilyName is "IPv4", "IPv6" or "both".
func (l Line) FamilyName() string {
	if l.Family == 0 {
		return "both"
	}
	return fmt.Sprintf("IPv%d", l.Family)
}

// Tally sums up lines.
type Tally struct{ Passed, Failed int }

func (t Tally) String() string { return fmt.Sprintf("%d passed, %d failed", t.Passed, t.Failed) }

// actPatience bounds one act, so that a hanging stage ends in a failure: a few seconds are
// enough, and a machine at its limit may take many times that.
const actPatience = 2 * time.Minute

// Play runs the whole program and hands each line to told. Acts that rest on one that
// failed, over the same family, fail unplayed. It returns early when ctx ends; acts not
// played then count as failed.
func Play(ctx context.Context, s Stage, told func(Line)) Tally {
	var t Tally
	hopeless := map[int]string{} // family → the act that failed
	for _, a := range program {
		families := []int{4, 6}
		if a.once {
			families = []int{0}
		}
		for _, family := range families {
			l := playOne(ctx, s, a, family, hopeless[family])
			if l.Passed() {
				t.Passed++
			} else {
				t.Failed++
			}
			if !l.Passed() && a.rests && hopeless[family] == "" {
				hopeless[family] = a.name
				if a.once {
					hopeless[4], hopeless[6] = a.name, a.name
				}
			}
			told(l)
		}
	}
	return t
}

func playOne(ctx context.Context, s Stage, a act, family int, failed string) Line {
	l := Line{Act: a.name, Family: family}
	if failed != "" {
		l.Err = fmt.Errorf("not played: it needs %q, which failed", failed)
		return l
	}
	if ctx.Err() != nil {
		l.Err = ctx.Err()
		return l
	}
	ctx, cancel := context.WithTimeout(ctx, actPatience)
	defer cancel()
	sc := &scene{Stage: s, family: family}
	begin := time.Now()
	l.Saw, l.Err = a.play(ctx, sc)
	if err := sc.restore(context.WithoutCancel(ctx)); l.Err == nil {
		l.Err = err
	}
	l.Took = time.Since(begin)
	return l
}
