package publish

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// mark tells the file that was written from any other, and from itself changed, without
// reading it. Zero: nothing was written.
type mark struct {
	device, inode     uint64
	size              int64
	modified, changed unix.Timespec
}

func markOf(path string) (mark, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return mark{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return mark{device: st.Dev, inode: st.Ino, size: st.Size, modified: st.Mtim, changed: st.Ctim}, nil
}

// tampered says what has become of the file since it was written; empty: nothing. One
// stat call.
func (w *work) tampered() string {
	if w.mark == (mark{}) || w.unwritten {
		return ""
	}
	switch now, err := markOf(w.config.Path); {
	case errors.Is(err, fs.ErrNotExist):
		return "it was removed"
	case err != nil:
		return fmt.Sprintf("it cannot be looked at: %v", err)
	case now.device != w.mark.device || now.inode != w.mark.inode:
		return "another file was put in its place"
	case now.size != w.mark.size:
		return fmt.Sprintf("its size went from %d to %d bytes", w.mark.size, now.size)
	case now != w.mark:
		return "it was written to, or its attributes were changed"
	}
	return ""
}
