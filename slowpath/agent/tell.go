package agent

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/publish"
)

// bell wakes one who waits. Ringing never waits.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// herald passes on what people should hear of: Problems, and Services that have lost their
// last endpoint, which is none.
type herald struct {
	publisher *publish.Publisher
	seen      *observer
	empty     *emptiness
	to        Tell
	wake      bell // when Problems have changed that are not the publisher's
}

// run passes on until ctx ends.
func (h *herald) run(ctx context.Context) error {
	later := time.NewTimer(0)
	later.Stop()
	defer later.Stop()
	for {
		changed := h.publisher.Changed()
		if again := h.pass(time.Now()); !again.IsZero() {
			later.Reset(time.Until(again))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-h.wake:
		case <-later.C:
		}
	}
}

// pass tells everything that holds now and returns when there may be more.
func (h *herald) pass(now time.Time) (again time.Time) {
	if s := h.publisher.State(); s != nil {
		h.empty.see(s.Services, now)
	}
	empty, again := h.empty.told(now)
	h.to(slices.Concat(h.publisher.Problems(), h.seen.ports.found(), h.seen.forwarding.found(), h.seen.asked.Problems(), empty))
	return again
}

// linesAtOnce bounds what one change writes into the log.
const linesAtOnce = 100

// tellLog is a Tell that writes what is new about Services into the log, where there is no
// API server that keeps Events beside them.
func tellLog(log *slog.Logger) Tell {
	known := map[model.Problem]bool{}
	return func(problems []model.Problem) {
		now, lines := map[model.Problem]bool{}, 0
		for _, p := range problems {
			if p.Kind != "Service" || now[p] {
				continue
			}
			now[p] = true
			if known[p] {
				continue
			}
			if lines++; lines <= linesAtOnce {
				log.Warn(p.Message, "service", p.Object, "field", p.Field, "reason", p.Reason)
			}
		}
		if lines > linesAtOnce {
			log.Warn("more Services have something to be told of: lace get problems shows all", "more", lines-linesAtOnce)
		}
		known = now
	}
}
