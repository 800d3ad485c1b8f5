package xdp

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestErrorQueueShowsTheAlias: the kernel asks no program about what it puts into a socket's
// error queue. Nobody listens at the alias here, so the datagram is refused.
func TestErrorQueueShowsTheAlias(t *testing.T) {
	bpffs := mountBPF(t)
	onLoopback(t, own4, own6, alias4, alias6)
	t.Cleanup(func() {
		if err := Cleanup(bpffs); err != nil {
			t.Error(err)
		}
	})
	withSockets(t, bpffs)
	for _, c := range []struct {
		name           string
		family         int
		level, option  int
		own, wantAlias string
	}{
		{"IPv4", unix.AF_INET, unix.IPPROTO_IP, unix.IP_RECVERR, own4, alias4},
		{"IPv6", unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, own6, alias6},
	} {
		t.Run(c.name, func(t *testing.T) {
			fd, err := unix.Socket(c.family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			if err := unix.SetsockoptInt(fd, c.level, c.option, 1); err != nil {
				t.Fatal(err)
			}
			if err := unix.Sendto(fd, []byte("x"), 0, sockaddr(c.family, c.own, ownPort)); err != nil {
				t.Fatal(err)
			}
			awaitError(t, fd)
			_, _, _, from, err := unix.Recvmsg(fd, make([]byte, 100), make([]byte, 500), unix.MSG_ERRQUEUE)
			if err != nil {
				t.Fatal(err)
			}
			if want := netip.AddrPortFrom(netip.MustParseAddr(c.wantAlias), ownPort).String(); textOf(from) != want {
				t.Errorf("the error is about a datagram to %s, want %s", textOf(from), want)
			}
		})
	}
}

// awaitError waits until a socket has an error to tell.
func awaitError(t *testing.T, fd int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		p := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(p, 1000)
		if n == 1 && p[0].Revents&unix.POLLERR != 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no error: %v, %+v", err, p)
		}
	}
}
