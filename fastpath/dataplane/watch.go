package dataplane

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// reconcileEvery is how often everything is looked at without being asked: a lost
// notification or a replaced device goes unnoticed for so long at most.
const reconcileEvery = time.Second

// watch follows the snapshot file until ctx is done, or the audit ends it. tick is called
// once a second.
func (t *tables) watch(ctx context.Context, a *audit, tick func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching for snapshots: %w", err)
	}
	defer w.Close()
	// The directory, because the file is replaced by renaming.
	if err := w.Add(filepath.Dir(t.path)); err != nil {
		return fmt.Errorf("watching %s for snapshots: %w", filepath.Dir(t.path), err)
	}
	clock, audits := time.NewTicker(reconcileEvery), time.NewTicker(auditEvery)
	defer clock.Stop()
	defer audits.Stop()
	t.refresh(ctx) // what came between the first look and the watch
	for due := false; ; due = false {
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.Events:
			if filepath.Clean(e.Name) == filepath.Clean(t.path) {
				t.refresh(ctx)
			}
			due = e.Has(fsnotify.Remove|fsnotify.Rename) && a.ours(e.Name)
		case <-a.notices:
			due = true
		case <-audits.C:
			due = true
		case err := <-w.Errors:
			t.log.Warn("watching for snapshots: a notification was lost, the next look is within a second", "error", err)
		case <-clock.C:
			t.refresh(ctx)
			t.reconcile()
			tick()
		}
		if !due {
			continue
		}
		if err := a.run(); err != nil {
			return err
		}
	}
}
