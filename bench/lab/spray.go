package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// SprayArgs says what to send: a datagram of each flow, round and round.
type SprayArgs struct {
	To    netip.AddrPort
	Flows int           // each from a port of its own
	Every time.Duration // one round
}

// Spray is a number of flows that send without waiting for answers.
type Spray struct {
	host *Host
	id   int
}

// Spray begins to send.
func (h *Host) Spray(ctx context.Context, a SprayArgs) (*Spray, error) {
	s := &Spray{host: h}
	return s, h.cell.call(ctx, "Cell.StartSpray", a, &s.id)
}

// Stop ends it and returns how many datagrams were sent.
func (s *Spray) Stop(ctx context.Context) (sent int, err error) {
	err = s.host.cell.call(ctx, "Cell.StopSpray", s.id, &sent)
	return sent, err
}

// spray is the sending end inside a cell.
type spray struct {
	conns []net.Conn
	stop  chan struct{}
	done  chan int
}

// sprays of this process, by number.
var sprays = struct {
	sync.Mutex
	next int
	all  map[int]*spray
}{all: map[int]*spray{}}

// StartSpray opens the sockets and sends.
func (s *cellService) StartSpray(a SprayArgs, id *int) error {
	if a.Flows < 1 || a.Every <= 0 {
		return fmt.Errorf("%d flows, a round every %s: say at least one, and a pause", a.Flows, a.Every)
	}
	k := &spray{stop: make(chan struct{}), done: make(chan int, 1)}
	for range a.Flows {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a.To))
		if err != nil {
			k.close()
			return err
		}
		k.conns = append(k.conns, c)
	}
	go k.run(a.Every)
	sprays.Lock()
	defer sprays.Unlock()
	sprays.next++
	*id = sprays.next
	sprays.all[*id] = k
	return nil
}

func (k *spray) close() {
	for _, c := range k.conns {
		c.Close()
	}
}

// run sends until it is told to stop. An error is that of an earlier datagram that was
// refused: the next one may be answered.
func (k *spray) run(every time.Duration) {
	defer k.close()
	pace := time.NewTicker(every)
	defer pace.Stop()
	b := make([]byte, 64)
	for sent := 0; ; {
		for _, c := range k.conns {
			if _, err := c.Write(b); err == nil {
				sent++
			}
		}
		select {
		case <-pace.C:
		case <-k.stop:
			k.done <- sent
			return
		}
	}
}

// StopSpray ends it.
func (s *cellService) StopSpray(id int, sent *int) error {
	sprays.Lock()
	k := sprays.all[id]
	delete(sprays.all, id)
	sprays.Unlock()
	if k == nil {
		return fmt.Errorf("no spray %d", id)
	}
	close(k.stop)
	*sent = <-k.done
	return nil
}
