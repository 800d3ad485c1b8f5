package measure

import (
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/bench/suite/rig"
)

// quick is as short as a measurement can be.
var quick = Times{Warm: 20 * time.Millisecond, For: 30 * time.Millisecond, NewFlows: 4096}

// TestEveryModeCarriesEveryLoad: each mode that this machine can have is built, and each load
// that it does not refuse gives a figure in the field that the table shows; on the longer
// paths some loads do.
func TestEveryModeCarriesEveryLoad(t *testing.T) {
	testenv.Privileged(t)
	for _, name := range []string{"direct", "nft", "iptables", "xdp", "asavie", "lace-off", "lace"} {
		t.Run(name, func(t *testing.T) {
			m, err := rig.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := rig.Open(t.Context(), rig.Config{Mode: m, Services: 3, FlowSlots: 1 << 18})
			if errors.Is(err, rig.ErrMissing) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			for i := range Loads {
				carries(t, &Loads[i], r, rig.Node)
			}
			for _, name := range []string{"udp-new", "udp-sockets", "tcp-1"} {
				l, err := Find(name)
				if err != nil {
					t.Fatal(err)
				}
				carries(t, l, r, rig.Across)
				carries(t, l, r, rig.Outside)
			}
		})
	}
}

// patient measures for longer when nothing came of a moment: the machine may be busy.
func patient(t *testing.T, l *Load, r *rig.Rig, p rig.Path) (v Values, err error) {
	for times := quick; times.For < 4*time.Second; times.For *= 4 {
		if v, err = l.Run(t.Context(), r, p, runtime.NumCPU()-1, times); err == nil {
			return v, nil
		}
		t.Logf("in %s: %v", times.For, err)
	}
	return nil, err
}

func carries(t *testing.T, l *Load, r *rig.Rig, p rig.Path) {
	t.Helper()
	if why, _ := l.Refuses(r.Mode, p); why != "" {
		return
	}
	v, err := patient(t, l, r, p)
	if err != nil {
		t.Error(err)
		return
	}
	if x, ok := v[l.Field]; !ok || !(x > 0) || math.IsInf(x, 0) {
		t.Errorf("%s on path %s: %s is %v", l.Name, p, l.Field, x)
	}
	// Of flows that nobody answers Go may refuse what it has no time for.
	unanswered := l.Name == "udp-oneway" || l.Name == "udp-new" || l.Name == "flow-memory"
	if loss := v["loss"]; loss > 0.2 && !unanswered {
		t.Errorf("%s on path %s: %.0f %% of the packets were lost", l.Name, p, 100*loss)
	}
	t.Logf("%-14s %-8s %v", l.Name, p, v)
}
