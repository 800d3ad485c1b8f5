package agent

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"lace-cni.io/lace/control/model"
)

// standing are the Problems that something which is looked at again and again has.
type standing struct {
	problems atomic.Pointer[[]model.Problem]
	changed  func() // told when Problems are others
}

// keep looks, at once and then every so often, until ctx ends.
func (s *standing) keep(ctx context.Context, every time.Duration, look func() []model.Problem) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if was, found := s.found(), look(); !slices.Equal(was, found) {
			s.problems.Store(&found)
			s.changed()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// found are the Problems of the last look. Any goroutine may call it.
func (s *standing) found() []model.Problem {
	if p := s.problems.Load(); p != nil {
		return *p
	}
	return nil
}
