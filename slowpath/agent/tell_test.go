package agent

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"lace-cni.io/lace/control/model"
)

// heard is a Tell that remembers.
type heard struct {
	mu    sync.Mutex
	last  []model.Problem
	calls int
}

func (h *heard) tell(problems []model.Problem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.calls = problems, h.calls+1
}

// reasons of what was told last about Services.
func (h *heard) reasons() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, p := range h.last {
		if p.Kind == "Service" {
			out = append(out, p.Reason)
		}
	}
	return strings.Join(out, " ")
}

// TestAPortThatIsTakenIsToldAndTakenBack when it is free, with nothing else changing.
func TestAPortThatIsTakenIsToldAndTakenBack(t *testing.T) {
	c := config(t, io.Discard)
	f := newFolder(t, &c)
	l, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", f.port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f.declare("ready: true")
	var h heard
	c.Tell = h.tell
	start(t, c)
	says := func(want string) {
		t.Helper()
		eventually(t, "what is told is "+want, func() error {
			if got := h.reasons(); got != want {
				return errors.New(got)
			}
			return nil
		})
	}
	says("FailedToStartServiceHealthcheck")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	says("")
}

// TestTheLogTellsOnce about each thing that is wrong with a Service, and again only when it
// was mended meanwhile; and no more than a hundred at once.
func TestTheLogTellsOnce(t *testing.T) {
	var log journal
	tell := tellLog(slog.New(slog.NewTextHandler(&log, nil)))
	bad := model.Problem{Kind: "Service", Object: "demo/web", Field: "spec.ports", Reason: "BadPort", Message: "wrong; mend it"}
	other := model.Problem{Kind: "Node", Object: "n1", Reason: "NodeMissing", Message: "not a Service"}
	for _, c := range []struct {
		problems []model.Problem
		lines    int // of BadPort so far
	}{
		{[]model.Problem{bad, other, bad}, 1},
		{[]model.Problem{bad}, 1},
		{nil, 1},
		{[]model.Problem{bad}, 2},
	} {
		tell(c.problems)
		if got := strings.Count(log.String(), "reason=BadPort"); got != c.lines || strings.Contains(log.String(), "NodeMissing") {
			t.Errorf("after %v: %d lines, want %d: %s", c.problems, got, c.lines, &log)
		}
	}
	var many []model.Problem
	for i := range 300 {
		p := bad
		p.Object, p.Reason = fmt.Sprintf("demo/s%d", i), "Many"
		many = append(many, p)
	}
	tell(many)
	if got := strings.Count(log.String(), "reason=Many"); got != linesAtOnce || !strings.Contains(log.String(), "more=200") {
		t.Errorf("%d lines of 300 Problems, want %d and how many more there are", got, linesAtOnce)
	}
}
