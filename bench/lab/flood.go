package lab

import (
	"context"
	"fmt"
	"net/netip"

	"lace-cni.io/lace/bench/lab/traffic"
)

// flood is one that runs in a cell.
type flood struct {
	cancel context.CancelFunc
	done   chan struct{}
	sent   uint64
	err    error
}

// StartFlood sends until StopFlood is called with the same number.
func (s *cellService) StartFlood(f traffic.Flood, id *int) error {
	if err := f.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &flood{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.sent, r.err = f.Run(ctx)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.floods == nil {
		s.floods = map[int]*flood{}
	}
	s.next++
	*id = s.next
	s.floods[*id] = r
	return nil
}

// StopFlood ends it and tells how many packets it has sent.
func (s *cellService) StopFlood(id int, sent *uint64) error {
	s.mu.Lock()
	r := s.floods[id]
	delete(s.floods, id)
	s.mu.Unlock()
	if r == nil {
		return fmt.Errorf("no flood %d", id)
	}
	r.cancel()
	<-r.done
	*sent = r.sent
	return r.err
}

// Flood is a flood of one host.
type Flood struct {
	host *Host
	id   int
}

// StartFlood floods from the host until it is stopped. Without sources it uses the host's
// own address.
func (h *Host) StartFlood(ctx context.Context, f traffic.Flood) (*Flood, error) {
	if !f.From.IsValid() {
		f.From = netip.PrefixFrom(h.Addr4, 32)
	}
	out := &Flood{host: h}
	return out, h.cell.call(ctx, "Cell.StartFlood", f, &out.id)
}

// Stop returns how many packets were sent.
func (f *Flood) Stop(ctx context.Context) (sent uint64, err error) {
	err = f.host.cell.call(ctx, "Cell.StopFlood", f.id, &sent)
	return sent, err
}
