// Package statedir makes the directory that lace-agent and lace-fastpath share.
//
// It holds a socket and files that steer the node's traffic, which are nobody else's business.
// The package owns who may write there, and touches no directory that it did not make.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// othersMayWrite are the bits of a mode by which somebody else could put files there.
const othersMayWrite fs.FileMode = 0o022

// Make makes the directory with mode 0700 if it is missing. One that is there is taken as it
// is if it belongs to the calling user and nobody else may write to it.
func Make(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if mode := st.Mode(); mode&othersMayWrite != 0 {
		return fmt.Errorf("state directory %s: others may write to it (mode %04o): name one of its own (--state-dir), which is made when it is missing", path, mode.Perm())
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("state directory: the system does not tell its owner")
	}
	if owner.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("state directory %s belongs to user %d: name one of its own (--state-dir), which is made when it is missing", path, owner.Uid)
	}
	return nil
}
