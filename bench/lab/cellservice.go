package lab

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
)

// cellService is what the process of a cell does when the lab asks. Methods have the
// form that net/rpc wants; each may be called while others are still at work.
type cellService struct {
	spec cellSpec

	mu       sync.Mutex
	next     int
	servers  map[netip.AddrPort]*traffic.Server
	streams  map[int]*traffic.RunningStream
	attempts map[int]*attempts
	floods   map[int]*flood
	children map[string]*child
}

// attempts is a burst that runs until it is stopped.
type attempts struct {
	cancel  context.CancelFunc
	done    chan struct{}
	answers []traffic.Answer
}

// Ready answers as soon as the cell has its mounts.
func (s *cellService) Ready(struct{}, *struct{}) error { return nil }

// Sysctl is one kernel parameter.
type Sysctl struct{ Name, Value string }

// SetSysctls writes kernel parameters in order.
func (s *cellService) SetSysctls(list []Sysctl, _ *struct{}) error {
	for _, p := range list {
		if err := writeSysctl(p.Name, p.Value); err != nil {
			return err
		}
	}
	return nil
}

// ListenArgs names a server.
type ListenArgs struct {
	Name string
	Addr netip.AddrPort
}

// Listen starts an echo server for TCP and UDP.
func (s *cellService) Listen(a ListenArgs, bound *netip.AddrPort) error {
	server, err := traffic.Listen(a.Name, a.Addr)
	if err != nil {
		return err
	}
	*bound = server.Addr()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers == nil {
		s.servers = map[netip.AddrPort]*traffic.Server{}
	}
	s.servers[*bound] = server
	return nil
}

// Unlisten stops a server and resets its connections.
func (s *cellService) Unlisten(addr netip.AddrPort, _ *struct{}) error {
	s.mu.Lock()
	server := s.servers[addr]
	delete(s.servers, addr)
	s.mu.Unlock()
	if server == nil {
		return fmt.Errorf("no server on %s", addr)
	}
	return server.Close()
}

// Lost is how many TCP segments a server had to send again.
func (s *cellService) Lost(addr netip.AddrPort, n *int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	server := s.servers[addr]
	if server == nil {
		return fmt.Errorf("no server on %s", addr)
	}
	*n = server.Lost()
	return nil
}

// Dial makes one attempt.
func (s *cellService) Dial(r traffic.Request, a *traffic.Answer) error {
	if err := r.Validate(); err != nil {
		return err
	}
	*a = traffic.Dial(context.Background(), r)
	return nil
}

// Burst makes many attempts and counts.
func (s *cellService) Burst(b traffic.Burst, t *traffic.Tally) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if b.Count == 0 {
		return fmt.Errorf("a burst of 0 attempts: say how many")
	}
	start := time.Now()
	b.Run(context.Background(), t.Add)
	t.Took = time.Since(start)
	return nil
}

// StartAttempts makes attempts until StopAttempts is called with the same number.
func (s *cellService) StartAttempts(b traffic.Burst, id *int) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if b.Every == 0 {
		return fmt.Errorf("endless attempts without a pause between them: set Every")
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &attempts{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		b.Run(ctx, func(answer traffic.Answer) { a.answers = append(a.answers, answer) })
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts == nil {
		s.attempts = map[int]*attempts{}
	}
	s.next++
	*id = s.next
	s.attempts[*id] = a
	return nil
}

// StopAttempts ends them and hands over every answer, oldest first.
func (s *cellService) StopAttempts(id int, answers *[]traffic.Answer) error {
	s.mu.Lock()
	a := s.attempts[id]
	delete(s.attempts, id)
	s.mu.Unlock()
	if a == nil {
		return fmt.Errorf("no running attempts %d", id)
	}
	a.cancel()
	<-a.done
	*answers = a.answers
	return nil
}

// StartStream opens the flows of a stream.
func (s *cellService) StartStream(spec traffic.Stream, id *int) error {
	r, err := spec.Start(context.Background())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = map[int]*traffic.RunningStream{}
	}
	s.next++
	*id = s.next
	s.streams[*id] = r
	return nil
}

func (s *cellService) stream(id int) (*traffic.RunningStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.streams[id]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("no stream %d", id)
}

// StreamProgress tells how a stream fares.
func (s *cellService) StreamProgress(id int, p *traffic.Progress) error {
	r, err := s.stream(id)
	if err != nil {
		return err
	}
	*p = r.Progress()
	return nil
}

// StopStream closes the flows of a stream.
func (s *cellService) StopStream(id int, p *traffic.Progress) error {
	r, err := s.stream(id)
	if err != nil {
		return err
	}
	*p = r.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, id)
	return nil
}
