package traffic

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Flood sends the first packet of flow after flow and takes no answer: from a raw socket,
// for no ordinary one is fast enough, or has another host's address. IPv4 only.
type Flood struct {
	Network string         // "tcp": SYNs; "udp": datagrams
	To      netip.AddrPort // of the Service
	From    netip.Prefix   // the sources, in turn; each sends from all of its ports
	Rate    int            // packets a second; 0: as fast as one processor can
}

// Validate names what is missing.
func (f *Flood) Validate() error {
	switch {
	case f.Network != "tcp" && f.Network != "udp":
		return fmt.Errorf("flood over %q: say tcp or udp", f.Network)
	case !f.To.Addr().Is4() || !f.From.Addr().Is4():
		return fmt.Errorf("flood from %s to %s: IPv4 addresses are needed", f.From, f.To)
	}
	return nil
}

// floodNice is how far the sending thread steps back for everybody else: on a machine with
// few processors a flood would otherwise show how busy they are and nothing more.
const floodNice = 10

// Run sends until ctx ends and returns how many packets the kernel has taken.
func (f *Flood) Run(ctx context.Context) (sent uint64, err error) {
	runtime.LockOSThread() // never unlocked: the thread ends with its priority
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), floodNice)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return 0, fmt.Errorf("raw socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: f.To.Addr().As4()}); err != nil {
		return 0, fmt.Errorf("raw socket to %s: %w", f.To.Addr(), err)
	}
	p := f.packet()
	begin := time.Now()
	for i := uint32(0); ctx.Err() == nil; i++ {
		p.aim(i)
		if _, err := unix.Write(fd, p.bytes); err == nil {
			sent++
		} else if err != unix.ENOBUFS && err != unix.EAGAIN {
			return sent, fmt.Errorf("flood of %s: %w", f.To, err)
		}
		if ahead := f.ahead(i, begin); ahead > time.Millisecond {
			time.Sleep(ahead)
		}
	}
	return sent, nil
}

// ahead is how much too early the next packet is.
func (f *Flood) ahead(i uint32, begin time.Time) time.Duration {
	if f.Rate == 0 || i%32 != 0 {
		return 0
	}
	return time.Duration(float64(i)/float64(f.Rate)*1e9) - time.Since(begin)
}

// floodPacket is a packet whose source changes.
type floodPacket struct {
	bytes []byte
	base  uint32
	hosts uint32
	fixed uint32 // sum of what does not change
	ck    int    // where the checksum is
}

const (
	firstPort = 1024
	allPorts  = 65536 - firstPort
)

func (f *Flood) packet() *floodPacket {
	header, protocol := 20, byte(unix.IPPROTO_TCP)
	if f.Network == "udp" {
		header, protocol = 8, unix.IPPROTO_UDP
	}
	b := make([]byte, 20+header)
	b[0], b[8], b[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	to, from := f.To.Addr().As4(), f.From.Masked().Addr().As4()
	copy(b[16:], to[:])
	l4 := b[20:]
	binary.BigEndian.PutUint16(l4[2:], f.To.Port())
	p := &floodPacket{bytes: b, base: binary.BigEndian.Uint32(from[:]), hosts: 1 << (32 - f.From.Bits()), ck: 20 + 16}
	if f.Network == "udp" {
		binary.BigEndian.PutUint16(l4[4:], uint16(header))
		p.ck = 20 + 6
	} else {
		l4[12], l4[13] = 5<<4, 2 // five words, SYN
		binary.BigEndian.PutUint16(l4[14:], 65535)
	}
	p.fixed = uint32(protocol) + uint32(header)
	for i := 16; i < len(b); i += 2 {
		p.fixed += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	return p
}

// aim makes it the i-th packet.
func (p *floodPacket) aim(i uint32) {
	src, port := p.base+i%p.hosts, uint16(firstPort+i/p.hosts%allPorts)
	binary.BigEndian.PutUint32(p.bytes[12:], src)
	binary.BigEndian.PutUint16(p.bytes[20:], port)
	sum := p.fixed + src>>16 + src&0xffff + uint32(port)
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(p.bytes[p.ck:], ^uint16(sum))
}
