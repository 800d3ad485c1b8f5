package cluster

import (
	"context"
	"io"
	"net"

	"lace-cni.io/lace/bench/lab"
)

// Reach lets the hosts of another lab reach the API server at the address that it has in its
// own, which is the outside host's, until end is called: starting a control plane takes much
// longer than building a lab.
func (c *Cluster) Reach(l *lab.Lab) (end func() error, err error) {
	here := net.JoinHostPort(l.Outside().Addr4.String(), apiPort)
	door, err := listenIn(l.Outside().PID(), "tcp", here)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go c.relay(ctx, door)
	return func() error { cancel(); return door.Close() }, nil
}

// relay carries connections to the API server until the door is closed.
func (c *Cluster) relay(ctx context.Context, door net.Listener) {
	there := net.JoinHostPort(c.Outside().Addr4.String(), apiPort)
	for {
		from, err := door.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := dialIn(ctx, c.Outside().PID(), "tcp", there)
			if err != nil {
				return // as a server that is not there
			}
			defer to.Close()
			defer context.AfterFunc(ctx, func() { from.Close(); to.Close() })()
			go func() { _, _ = io.Copy(to, from); to.Close() }()
			_, _ = io.Copy(from, to)
		}()
	}
}
