package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Local UDP ports are taken in turn, for a random one that comes again within the life of a
// flow may be one conversation to two addresses with one endpoint behind them, decided on two
// nodes, which Lace cannot tell apart (docs/reference/unsupported.md). A client that asks for
// a port of its own gets it.
const (
	firstUDPPort = 36000
	countUDPPort = 24000
)

// lastUDPPort is where the turn is. It begins anywhere, so that clients of one address that
// live in several processes rarely meet.
var lastUDPPort atomic.Uint32

func init() { lastUDPPort.Store(rand.Uint32N(countUDPPort)) }

// dialUDP connects a socket with the next local port that is free.
func dialUDP(ctx context.Context, d net.Dialer, to string) (conn net.Conn, err error) {
	for range countUDPPort {
		port := firstUDPPort + int(lastUDPPort.Add(1)%countUDPPort)
		d.LocalAddr = &net.UDPAddr{Port: port}
		conn, err = d.DialContext(ctx, "udp", to)
		if !errors.Is(err, unix.EADDRINUSE) {
			return conn, err
		}
	}
	return nil, fmt.Errorf("no local port from %d to %d is free: %w", firstUDPPort, firstUDPPort+countUDPPort-1, err)
}
