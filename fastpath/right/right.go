// Package right says which right a process lacks when the kernel has refused it something.
//
// It owns the names of the capabilities that Lace's processes need, and what each is for.
// It must never decide whether something is tried: only the kernel knows what is allowed,
// and a process that was refused nothing lacks nothing.
//
// Cost: one system call, after a refusal.
//
// Flow: an error on its way out → refused for want of a right? → the same error with what
// is missing and what to do.
package right

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Capability is one right of capabilities(7).
type Capability struct {
	number uint
	name   string
	use    string
}

// Capabilities that Lace's processes need.
var (
	NetAdmin = Capability{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "devices, routes and programs on them"}
	NetRaw   = Capability{unix.CAP_NET_RAW, "CAP_NET_RAW", "AF_XDP sockets"}
	BPF      = Capability{unix.CAP_BPF, "CAP_BPF", "BPF programs and maps"}
	SysAdmin = Capability{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "the trunk's private namespace"}
	IPCLock  = Capability{unix.CAP_IPC_LOCK, "CAP_IPC_LOCK", "memory of AF_XDP sockets"}
)

// Explain adds to an error of a refusal (EPERM, EACCES) which of the needed capabilities
// the process lacks, and what to do. Any other error is returned as it is.
func Explain(err error, needed ...Capability) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	held, e := effective()
	if e != nil {
		return fmt.Errorf("%w; run it as root (its capabilities cannot be read: %w)", err, e)
	}
	return explain(err, os.Geteuid(), held, needed)
}

func explain(err error, user int, held uint64, needed []Capability) error {
	var lacks []string
	for _, c := range needed {
		if held&(1<<c.number) == 0 {
			lacks = append(lacks, c.name+" ("+c.use+")")
		}
	}
	switch {
	case len(lacks) > 0:
		return fmt.Errorf("%w; this process is user %d and lacks %s: run it as root, or give it these capabilities", err, user, strings.Join(lacks, ", "))
	case user != 0:
		return fmt.Errorf("%w; this process is user %d: run it as root, or give that user the path", err, user)
	}
	return err
}

// effective reads the capabilities that are in force, by bit.
func effective() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return 0, err
	}
	return uint64(sets[1].Effective)<<32 | uint64(sets[0].Effective), nil
}
