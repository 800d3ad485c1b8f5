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

// TestTheLogTellsOnce when a Problem comes, whatever it is of, and once when it is gone; no more
// than a hundred lines at once, and none of what another part of the agent logs.
func TestTheLogTellsOnce(t *testing.T) {
	var log journal
	tell := tellLog(slog.New(slog.NewTextHandler(&log, nil)), true, nowhereWritten)
	bad := model.Problem{Kind: "Service", Object: "demo/web", Field: "spec.ports", Reason: "BadPort", Message: "wrong; mend it"}
	file := model.Problem{Kind: "File", Object: "web.yaml document 1", Reason: "NotYAML", Message: "line 3 is no YAML"}
	elsewhere := model.Problem{Kind: "File", Object: "/etc/lace", Reason: "FolderUnreadable", Message: "no such folder"}
	reworded := bad
	reworded.Message = "wrong in another way; mend it"
	for _, c := range []struct {
		name       string
		problems   []model.Problem
		come, gone int // lines so far
	}{
		{"they come", []model.Problem{bad, file, bad, elsewhere}, 2, 0},
		{"nothing is new", []model.Problem{bad, file}, 2, 0},
		{"one goes", []model.Problem{bad}, 2, 1},
		{"one says something else, which is no end of it", []model.Problem{reworded}, 3, 1},
		{"the other goes", nil, 3, 2},
		{"one comes back", []model.Problem{file}, 4, 2},
	} {
		tell(c.problems)
		come, gone := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "a Problem is gone")
		if come != c.come || gone != c.gone {
			t.Errorf("%s: %d came and %d went, want %d and %d: %s", c.name, come, gone, c.come, c.gone, &log)
		}
	}
	if s := log.String(); !strings.Contains(s, "kind=File object=\"web.yaml document 1\"") || strings.Contains(s, "FolderUnreadable") {
		t.Error(s)
	}
	var many []model.Problem
	for i := range 300 {
		p := bad
		p.Object, p.Reason = fmt.Sprintf("demo/s%d", i), "Many"
		many = append(many, p)
	}
	tell(append(many, file))
	if got := strings.Count(log.String(), "reason=Many"); got != linesAtOnce || !strings.Contains(log.String(), "more=200") {
		t.Errorf("%d lines of 300 Problems, want %d and how many more there are", got, linesAtOnce)
	}
}

// TestTheLogLeavesServicesToEvents where an API server keeps these, and tells the rest.
func TestTheLogLeavesServicesToEvents(t *testing.T) {
	var log journal
	var h heard
	tell := both(h.tell, tellLog(slog.New(slog.NewTextHandler(&log, nil)), false, nowhereWritten))
	tell([]model.Problem{{Kind: "Service", Object: "demo/web", Reason: "BadPort"}, {Kind: "Node", Object: "n1", Reason: "NodeMissing"}})
	if s := log.String(); strings.Contains(s, "BadPort") || !strings.Contains(s, "NodeMissing") || len(h.last) != 2 {
		t.Errorf("%s, told %v", s, h.last)
	}
}
