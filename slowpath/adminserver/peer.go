package adminserver

import (
	"fmt"
	"log/slog"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checked hands out connections of root and of the agent's own user only. The mode of
// the socket says the same; this holds even where somebody widened it.
type checked struct {
	*net.UnixListener
	log *slog.Logger
}

// Accept implements net.Listener.
func (l *checked) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := uidOf(c)
		if err == nil && mayAsk(uid) {
			return c, nil
		}
		if err == nil {
			err = fmt.Errorf("user %d may not ask", uid)
		}
		l.log.Warn("a connection to the admin socket was refused", "error", err)
		c.Close()
	}
}

func mayAsk(uid int) bool { return uid == 0 || uid == os.Geteuid() }

// uidOf asks the kernel who connected (SO_PEERCRED, unix(7)).
func uidOf(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	return int(cred.Uid), nil
}
