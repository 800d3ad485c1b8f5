package traffic

import (
	"net"

	"golang.org/x/sys/unix"
)

// lost is how many segments this end of a TCP connection had to send again because they
// were lost: those that it sent again, less those that the other end then had twice (the
// kernel also sends again when an answer is merely late). 0 for anything but a TCP socket.
func lost(c net.Conn) int {
	tcp, isTCP := c.(*net.TCPConn)
	if !isTCP {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	raw.Control(func(fd uintptr) {
		if state, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int(state.Total_retrans) - int(state.Dsack_dups)
		}
	})
	return max(n, 0)
}
