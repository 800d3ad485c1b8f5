package traffic

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Stream is a number of long-lived flows that send, wait for the echo, compare it, and
// go on until they are stopped.
type Stream struct {
	Request               // Bytes: payload of each turn, 0: 512; Timeout: to connect, and longest silence
	Count   int           // flows; 0: 1
	Every   time.Duration // pause between turns; 0: none
}

// Progress is the state of a stream.
type Progress struct {
	Flows   int            // that were opened
	Broken  int            // that failed: refused, reset, closed, corrupt, moved to another server or silent too long
	Turns   int            // echoes compared, over all flows
	Lost    int            // datagrams without an echo in time; TCP segments that this end had to send again
	Gap     time.Duration  // longest time that any flow waited for an echo
	Servers map[string]int // flows by the server that holds them
	Clients map[string]int // flows by client address as the servers see it
	First   string         // text of the first failure
}

// udpPatience is how long a flow waits for a datagram before it counts it as lost.
const udpPatience = 500 * time.Millisecond

// RunningStream is a stream that was started. Its methods may be called from any
// goroutine.
type RunningStream struct {
	spec    Stream
	connect Connect
	cancel  context.CancelFunc
	ctx     context.Context
	wg      sync.WaitGroup

	mu       sync.Mutex
	progress Progress
	waiting  map[int]time.Time // flow → since when it waits for an echo
	open     map[int]net.Conn  // flows that are not over
}

// Start opens the flows with ordinary sockets, one after the other, and returns when all
// are open, or with the first failure.
func (s Stream) Start(ctx context.Context) (*RunningStream, error) { return s.StartBy(ctx, Sockets) }

// StartBy is Start over another kind of connection.
func (s Stream) StartBy(ctx context.Context, connect Connect) (*RunningStream, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s.Count = max(s.Count, 1)
	if s.Bytes == 0 {
		s.Bytes = 512
	}
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	r := &RunningStream{spec: s, connect: connect, waiting: map[int]time.Time{}, open: map[int]net.Conn{}}
	r.progress.Servers, r.progress.Clients = map[string]int{}, map[string]int{}
	r.ctx, r.cancel = context.WithCancel(ctx)
	for i := range s.Count {
		if err := r.begins(i); err != nil {
			r.Stop()
			return nil, fmt.Errorf("flow %d of %d to %s/%s: %w", i+1, s.Count, s.To, s.Network, err)
		}
	}
	return r, nil
}

// begins opens one flow.
func (r *RunningStream) begins(i int) error {
	conn, err := r.connect(r.ctx, &r.spec.Request)
	if err != nil {
		return err
	}
	var name string
	var client netip.AddrPort
	if r.spec.Network == "tcp" {
		name, client, err = askTCP(conn, 0)
	} else {
		name, client, err = askUDP(conn, r.spec.Bytes, 0)
	}
	if err != nil {
		conn.Close()
		return err
	}
	r.mu.Lock()
	r.progress.Flows++
	r.progress.Servers[name]++
	r.progress.Clients[client.Addr().String()]++
	r.open[i] = conn
	r.mu.Unlock()
	r.wg.Go(func() {
		defer r.ends(i)
		stop := context.AfterFunc(r.ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		err := r.turns(i, conn, name)
		if err != nil && r.ctx.Err() == nil {
			r.broke(fmt.Errorf("flow %d with %s: %w", i+1, name, err))
		}
	})
	return nil
}

// ends closes one flow.
func (r *RunningStream) ends(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Lost += lost(r.open[i])
	r.open[i].Close()
	delete(r.open, i)
}

func (r *RunningStream) turns(i int, conn net.Conn, server string) error {
	var offset uint64
	for r.ctx.Err() == nil {
		begin := r.begin(i)
		var err error
		if r.spec.Network == "tcp" {
			err = r.segment(conn, offset)
			offset += uint64(r.spec.Bytes)
		} else {
			offset, err = r.untilEchoed(conn, server, offset)
		}
		if err != nil {
			return err
		}
		r.end(i, begin)
		if r.spec.Every > 0 {
			select {
			case <-time.After(r.spec.Every):
			case <-r.ctx.Done():
			}
		}
	}
	return nil
}

func (r *RunningStream) segment(conn net.Conn, offset uint64) error {
	if err := r.setDeadline(conn, r.spec.Timeout); err != nil {
		return err
	}
	return echoTCP(conn, r.spec.Bytes, offset)
}

// untilEchoed sends datagrams, each with a new sequence number, until one is echoed, and
// returns the next number.
func (r *RunningStream) untilEchoed(conn net.Conn, server string, sequence uint64) (uint64, error) {
	giveUp := time.Now().Add(r.spec.Timeout)
	for ; time.Now().Before(giveUp); sequence++ {
		if err := r.setDeadline(conn, udpPatience); err != nil {
			return sequence, err
		}
		name, _, err := askUDP(conn, r.spec.Bytes, sequence)
		switch outcomeOf(err) {
		case OK:
			if name != server {
				return sequence, fmt.Errorf("moved from %s to %s", server, name)
			}
			return sequence + 1, nil
		case Timeout:
			r.mu.Lock()
			r.progress.Lost++
			r.mu.Unlock()
		default:
			return sequence, err
		}
	}
	return sequence, fmt.Errorf("no echo for %s", r.spec.Timeout)
}

// setDeadline gives the next turn its time. Stop sets a deadline in the past, which must
// not be overwritten: the end of the context is looked at afterwards.
func (r *RunningStream) setDeadline(conn net.Conn, d time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	return r.ctx.Err()
}

func (r *RunningStream) begin(i int) time.Time {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[i] = now
	return now
}

func (r *RunningStream) end(i int, begin time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, i)
	r.progress.Turns++
	r.progress.Gap = max(r.progress.Gap, time.Since(begin))
}

func (r *RunningStream) broke(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Broken++
	if r.progress.First == "" {
		r.progress.First = err.Error()
	}
}

// Progress is the state now; a flow that is waiting counts into the gap.
func (r *RunningStream) Progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.progress
	p.Servers, p.Clients = clone(p.Servers), clone(p.Clients)
	for _, c := range r.open {
		p.Lost += lost(c)
	}
	for _, since := range r.waiting {
		p.Gap = max(p.Gap, time.Since(since))
	}
	return p
}

// Stop closes the flows and returns the final state.
func (r *RunningStream) Stop() Progress {
	p := r.Progress()
	r.cancel()
	r.wg.Wait()
	return p
}

func clone(m map[string]int) map[string]int {
	out := make(map[string]int, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
