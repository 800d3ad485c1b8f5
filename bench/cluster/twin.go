package cluster

import (
	"context"
	"errors"
	"io"
	"net"

	"lace-cni.io/lace/bench/lab"
)

// Twin builds a second lab with the same cast and the same addresses, whose nodes read from
// this cluster's API server: what its outside host is called at for that is handed through.
// So one node of the cluster can be carried by two proxies that do not meet. Close it before
// the cluster.
func (c *Cluster) Twin(ctx context.Context, t lab.Topology) (*Cluster, error) {
	l, err := lab.Start(ctx, t)
	if err != nil {
		return nil, err
	}
	twin := &Cluster{Lab: l, API: c.API, binary: c.binary, keys: c.keys, server: c.server}
	host := l.Outside()
	at := net.JoinHostPort(host.Addr4.String(), apiPort)
	door, err := listenIn(host.PID(), "tcp", at)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	twin.ends = append(twin.ends, door.Close)
	go func() {
		for {
			conn, err := door.Accept()
			if err != nil {
				return // closed
			}
			go c.handThrough(ctx, conn, at)
		}
	}()
	return twin, nil
}

// handThrough joins a connection with the API server until one end of either closes.
func (c *Cluster) handThrough(ctx context.Context, conn net.Conn, to string) {
	defer conn.Close()
	server, err := dialIn(ctx, c.Outside().PID(), "tcp", to)
	if err != nil {
		return // who called tries again
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, conn)
		_ = server.Close()
	}()
	_, _ = io.Copy(conn, server)
}
