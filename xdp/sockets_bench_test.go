package xdp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkSockets is what a connect of a datagram socket costs: without the programs, with
// them to an address that is nobody's alias, and to one that has an alias.
func BenchmarkSockets(b *testing.B) {
	bpffs := socketNode(b)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	connects := func(port int) func(*testing.B) {
		return func(b *testing.B) {
			to := sockaddr(unix.AF_INET, own4, port)
			for b.Loop() {
				if err := unix.Connect(fd, to); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("without programs", connects(ownPort))
	withSockets(b, bpffs)
	b.Run("elsewhere", connects(ownPort+1))
	b.Run("to an alias", connects(ownPort))
}
