package adminserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"lace-cni.io/lace/slowpath/listener"
)

// checkEvery is how often the socket is looked at, whether it is still there.
const checkEvery = time.Second

// socket is where people find the server.
type socket struct {
	path     string
	repaired func()
	last     *net.UnixListener
	file     os.FileInfo // of last; nil: not known
	said     string      // why it could not be made again, as logged last
}

// keep makes the socket again should somebody take it away, until ctx ends.
func (s *Server) keep(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.check(ctx)
		}
	}
}

// check listens again if another file, or none, is at the path. What was connected stays.
func (s *Server) check(ctx context.Context) {
	k := &s.socket
	if there, err := os.Lstat(k.path); err == nil && k.file != nil && os.SameFile(there, k.file) {
		return
	}
	l, err := listen(k.path)
	if err != nil {
		if said := err.Error(); said != k.said {
			s.log.Error("the admin socket was taken away and cannot be made again, trying every second", "error", err)
			k.said = said
		}
		return
	}
	k.said = ""
	k.last.SetUnlinkOnClose(false) // the path is the new one's
	k.use(l)
	s.log.Warn("somebody took away the admin socket, it is made again", "path", k.path)
	k.repaired()
	go func() {
		err := s.http.Serve(s.bound(l))
		if !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
			s.log.Error("the admin socket does not work any more", "error", err)
		}
	}()
}

// use notes which file is the socket's.
func (k *socket) use(l *net.UnixListener) {
	k.last = l
	k.file, _ = os.Lstat(k.path) // gone already: the next check makes it again
}

// bound limits who may connect, and how often.
func (s *Server) bound(l *net.UnixListener) net.Listener {
	return listener.Bound(&checked{UnixListener: l, log: s.log}, maxConnections)
}
