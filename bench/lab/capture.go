package lab

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Refusal is a packet that came in and says no: a TCP reset, or an ICMP or ICMPv6 message
// that is neither an echo nor part of neighbour discovery.
type Refusal struct {
	At    time.Time
	Frame []byte
}

// Watchdog listens for refusals on one device of a host.
type Watchdog struct {
	host *Host
	id   int
}

// Watch begins to listen on a device.
func (h *Host) Watch(ctx context.Context, device string) (*Watchdog, error) {
	w := &Watchdog{host: h}
	return w, h.cell.call(ctx, "Cell.StartWatch", device, &w.id)
}

// Stop returns the refusals that came in, oldest first.
func (w *Watchdog) Stop(ctx context.Context) (seen []Refusal, err error) {
	err = w.host.cell.call(ctx, "Cell.StopWatch", w.id, &seen)
	return seen, err
}

// watches of this process, by number.
var watches = struct {
	sync.Mutex
	all map[int]*capture
}{all: map[int]*capture{}}

// capture is a packet socket and what it has brought.
type capture struct {
	fd    int
	done  chan struct{} // closed: what is there is all that is wanted
	ended chan struct{}
	seen  []Refusal
}

// StartWatch opens a packet socket that lets refusals through and nothing else.
func (s *cellService) StartWatch(device string, id *int) error {
	c, err := openCapture(device)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", device, err)
	}
	go c.run()
	watches.Lock()
	defer watches.Unlock()
	*id = c.fd
	watches.all[c.fd] = c
	return nil
}

// StopWatch closes it.
func (s *cellService) StopWatch(id int, seen *[]Refusal) error {
	watches.Lock()
	c := watches.all[id]
	delete(watches.all, id)
	watches.Unlock()
	if c == nil {
		return fmt.Errorf("no watch %d", id)
	}
	close(c.done)
	<-c.ended
	*seen = c.seen
	return nil
}

func openCapture(device string) (*capture, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	all := int(uint16(unix.ETH_P_ALL)<<8 | uint16(unix.ETH_P_ALL)>>8)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // nothing until it is bound
	if err != nil {
		return nil, err
	}
	filter := unix.SockFprog{Len: uint16(len(refusals)), Filter: (*unix.SockFilter)(unsafe.Pointer(&refusals[0]))}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter)
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: dev.Index})
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &capture{fd: fd, done: make(chan struct{}), ended: make(chan struct{})}, nil
}

// run reads until it is told to end and nothing is left.
func (c *capture) run() {
	defer close(c.ended)
	defer unix.Close(c.fd)
	b := make([]byte, 2048)
	for {
		n, from, err := unix.Recvfrom(c.fd, b, 0)
		if err == unix.EAGAIN && c.over() {
			return
		}
		if err != nil {
			continue // the time is up, or a signal came
		}
		if at, ok := from.(*unix.SockaddrLinklayer); ok && at.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		c.seen = append(c.seen, Refusal{time.Now(), append([]byte{}, b[:n]...)})
	}
}

func (c *capture) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Operations of a classic filter (linux/filter.h).
const (
	loadHalf   = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
	loadByte   = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
	loadAtX    = unix.BPF_LD | unix.BPF_B | unix.BPF_IND
	loadHeader = unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH
	equal      = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	atLeast    = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	anyOf      = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	give       = unix.BPF_RET | unix.BPF_K
)

// refusals passes what Refusal says. Jumps count the instructions to leave out.
var refusals = []unix.SockFilter{
	0:  {Code: loadHalf, K: 12},
	1:  {Code: equal, K: unix.ETH_P_IP, Jf: 11},
	2:  {Code: loadHeader, K: 14},
	3:  {Code: loadByte, K: 23},
	4:  {Code: equal, K: unix.IPPROTO_ICMP, Jf: 3},
	5:  {Code: loadAtX, K: 14},
	6:  {Code: equal, K: 8, Jt: 14}, // echo request
	7:  {Code: equal, K: 0, Jt: 13, Jf: 14},
	8:  {Code: equal, K: unix.IPPROTO_TCP, Jf: 12},
	9:  {Code: loadHalf, K: 20},
	10: {Code: anyOf, K: 0x1fff, Jt: 10},
	11: {Code: loadAtX, K: 14 + 13},
	12: {Code: anyOf, K: 4, Jt: 9, Jf: 8},
	13: {Code: equal, K: unix.ETH_P_IPV6, Jf: 7},
	14: {Code: loadByte, K: 20},
	15: {Code: equal, K: unix.IPPROTO_ICMPV6, Jf: 2},
	16: {Code: loadByte, K: 54},
	17: {Code: atLeast, K: 128, Jt: 3, Jf: 4}, // informational
	18: {Code: equal, K: unix.IPPROTO_TCP, Jf: 2},
	19: {Code: loadByte, K: 54 + 13},
	20: {Code: anyOf, K: 4, Jt: 1},
	21: {Code: give, K: 0},
	22: {Code: give, K: 0xffff},
}
