package agent

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestASnapshotOnItsWayIsNotLogged: that the fast path is behind is worth a line when it is so
// twice in a row.
func TestASnapshotOnItsWayIsNotLogged(t *testing.T) {
	s := newScene(t)
	var log strings.Builder
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	s.passing.Synced()
	s.published(7)
	s.fastpath(7, 0)
	now := time.Now()
	expect := func(want string) {
		t.Helper()
		log.Reset()
		now = now.Add(lookEvery)
		s.watch(look(s.config), now)
		if !strings.Contains(log.String(), want) || want == "" && log.Len() > 0 {
			t.Errorf("logged %q, want %q", log.String(), want)
		}
	}
	s.observer.said = "something"
	expect("ready")
	s.published(8)
	expect("")
	s.fastpath(8, 0)
	expect("")
	s.published(9)
	expect("")
	expect("last snapshot")
	expect("")
	s.fastpath(9, 0)
	expect("ready")
}
