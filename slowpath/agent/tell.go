package agent

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
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
	h.to(slices.Concat(h.publisher.Problems(), h.seen.ports.found(), h.seen.forwarding.found(), h.seen.pathless.found(), h.seen.asked.Problems(), empty))
	return again
}

// linesAtOnce bounds what one change writes into the log.
const linesAtOnce = 100

// loggedElsewhere are reasons that the part which finds them writes into the log itself.
var loggedElsewhere = []string{"FolderUnreadable", "NotPublished"}

// tellLog is a Tell that writes into the log which Problems have come, and which are gone. Those
// of Services are left out unless services is given: beside an API server, Events tell them. Each is
// told with the place of its object, if there is one; another place is no other Problem.
func tellLog(log *slog.Logger, services bool, place func(model.Problem) source.Place) Tell {
	known := map[model.Problem]bool{}
	return func(problems []model.Problem) {
		now, about, lines := map[model.Problem]bool{}, map[model.Problem]bool{}, 0
		say := func(level slog.Level, text string, p model.Problem) {
			if lines++; lines <= linesAtOnce {
				words := []any{"kind", p.Kind, "object", p.Object, "field", p.Field, "reason", p.Reason}
				if at := api.Place(place(p)).String(); at != "" {
					words = append(words, "place", at)
				}
				log.Log(context.Background(), level, text, words...)
			}
		}
		for _, p := range problems {
			if p.Kind == "Service" && !services || now[p] || slices.Contains(loggedElsewhere, p.Reason) {
				continue
			}
			now[p], about[wordless(p)] = true, true
			if !known[p] {
				say(slog.LevelWarn, p.Message, p)
			}
		}
		for p := range known {
			if !now[p] && !about[wordless(p)] {
				say(slog.LevelInfo, "a Problem is gone", p)
			}
		}
		if lines > linesAtOnce {
			log.Warn("there is more to be told of: lace get problems shows all", "more", lines-linesAtOnce)
		}
		known = now
	}
}

// wordless is what a Problem is about, however it is put.
func wordless(p model.Problem) model.Problem {
	p.Message = ""
	return p
}

// both tells the one and then the other.
func both(a, b Tell) Tell {
	return func(problems []model.Problem) {
		a(problems)
		b(problems)
	}
}
