package e2e

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// departures notes when the kernel sent each datagram to a neighbour out of a node's device.
type departures struct {
	t     *testing.T
	fd    int
	done  chan struct{} // closed: what is there is all that is wanted
	ended chan struct{}

	mu sync.Mutex
	at []int64 // nanoseconds since 1970
}

// watchDepartures begins to note. The result is closed with the test.
func watchDepartures(t *testing.T, pid int, device string, to net.HardwareAddr) *departures {
	t.Helper()
	d := &departures{t: t, done: make(chan struct{}), ended: make(chan struct{})}
	var err error
	inNamespace(t, fmt.Sprintf("/proc/%d/ns/net", pid), func() { d.fd, err = tapOf(device, to) })
	if err != nil {
		t.Fatalf("listening on %s: %v", device, err)
	}
	go d.run()
	t.Cleanup(d.close)
	return d
}

// tapOf opens a packet socket for UDP to a hardware address.
func tapOf(device string, to net.HardwareAddr) (fd int, err error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return 0, err
	}
	all := uint16(unix.ETH_P_ALL)<<8 | uint16(unix.ETH_P_ALL)>>8
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return 0, err
	}
	filter := datagramsTo(to)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	for _, step := range []func() error{
		func() error { return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program) },
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) },
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) },
		func() error {
			return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000})
		},
		func() error { return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: dev.Index}) },
	} {
		if err := step(); err != nil {
			unix.Close(fd)
			return 0, err
		}
	}
	return fd, nil
}

// datagramsTo is a classic filter (linux/filter.h). Jumps count the instructions to leave out.
func datagramsTo(mac net.HardwareAddr) []unix.SockFilter {
	const (
		load  = unix.BPF_LD | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give  = unix.BPF_RET | unix.BPF_K
	)
	high := uint32(mac[0])<<24 | uint32(mac[1])<<16 | uint32(mac[2])<<8 | uint32(mac[3])
	low := uint32(mac[4])<<8 | uint32(mac[5])
	return []unix.SockFilter{
		0:  {Code: load | unix.BPF_W, K: 0},
		1:  {Code: equal, K: high, Jf: 8},
		2:  {Code: load | unix.BPF_H, K: 4},
		3:  {Code: equal, K: low, Jf: 6},
		4:  {Code: load | unix.BPF_H, K: 12},
		5:  {Code: equal, K: unix.ETH_P_IP, Jt: 2},
		6:  {Code: load | unix.BPF_B, K: 20}, // next header
		7:  {Code: equal, K: unix.IPPROTO_UDP, Jt: 3, Jf: 2},
		8:  {Code: load | unix.BPF_B, K: 23}, // protocol
		9:  {Code: equal, K: unix.IPPROTO_UDP, Jt: 1},
		10: {Code: give, K: 0},
		11: {Code: give, K: 64},
	}
}

// run reads until it is told to end and nothing is left.
func (d *departures) run() {
	defer close(d.ended)
	b, more := make([]byte, 64), make([]byte, 128)
	for {
		_, m, _, _, err := unix.Recvmsg(d.fd, b, more, 0)
		if err == unix.EAGAIN && d.over() {
			return
		}
		if err != nil {
			continue // the time is up, or a signal came
		}
		at := kernelTime(more[:m])
		d.mu.Lock()
		d.at = append(d.at, at)
		d.mu.Unlock()
	}
}

func (d *departures) over() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// kernelTime is when the kernel sent what came with these control messages; 0 when it does
// not say.
func kernelTime(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		}
	}
	return 0
}

// since counts what left after a moment, and says when the last did; zero: nothing ever.
func (d *departures) since(moment time.Time) (n int, last time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.at {
		if at > moment.UnixNano() {
			n++
		}
	}
	if all := len(d.at); all > 0 {
		last = time.Unix(0, d.at[all-1])
	}
	return n, last
}

// close ends it. A tap that has missed something is no witness.
func (d *departures) close() {
	close(d.done)
	<-d.ended
	defer unix.Close(d.fd)
	stats, err := unix.GetsockoptTpacketStats(d.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil || stats.Drops > 0 {
		d.t.Errorf("the tap missed packets: %+v, %v", stats, err)
	}
	if len(d.at) == 0 {
		d.t.Error("the tap saw nothing at all")
	}
}
