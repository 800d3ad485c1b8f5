package xdp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupRootID is the inode number and the id of the root of the cgroup2 hierarchy, which
// the kernel gives to nothing else in it. A container often sees its own part of the
// hierarchy where the root would be.
const cgroupRootID = 1

// ErrNoCgroup means that the root of the cgroup2 hierarchy is out of reach.
var ErrNoCgroup = errors.New("the root of the cgroup2 hierarchy is out of reach: mount one (mount -t cgroup2 none /sys/fs/cgroup/unified), or show lace-fastpath the node's /sys/fs/cgroup")

// openCgroupRoot finds the root where it is mounted, be it beside version 1. Where it is
// not, it is mounted for this process alone, at no path.
func openCgroupRoot() (*os.File, error) {
	mounts, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("looking for the cgroup2 hierarchy: %w", err)
	}
	defer mounts.Close()
	for _, path := range cgroupMounts(mounts) {
		if f := openIfRoot(path); f != nil {
			return f, nil
		}
	}
	return mountCgroup()
}

// cgroupMounts lists where a cgroup2 hierarchy is mounted, of what mountinfo says (proc(5)).
func cgroupMounts(mountinfo io.Reader) (paths []string) {
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		mount, kind, found := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(mount)
		if found && strings.HasPrefix(kind, "cgroup2 ") && len(fields) > 4 {
			paths = append(paths, unescape(fields[4]))
		}
	}
	return paths
}

// unescape reads the octal escapes of a path in mountinfo.
func unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(b))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// openIfRoot opens a directory if it is the root; nil: it is not, or cannot be looked at.
func openIfRoot(path string) *os.File {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	if !isCgroupRoot(f) {
		f.Close()
		return nil
	}
	return f
}

func isCgroupRoot(f *os.File) bool {
	var fs unix.Statfs_t
	var st unix.Stat_t
	return unix.Fstatfs(int(f.Fd()), &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC &&
		unix.Fstat(int(f.Fd()), &st) == nil && st.Ino == cgroupRootID
}

// mountCgroup mounts the hierarchy at no path. In a cgroup namespace of its own a process
// gets its own part that way, and not the root.
func mountCgroup() (*os.File, error) {
	fd, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("%w (mounting it here: %w)", ErrNoCgroup, err)
	}
	defer unix.Close(fd)
	if err := unix.FsconfigCreate(fd); err != nil {
		return nil, fmt.Errorf("%w (mounting it here: %w)", ErrNoCgroup, err)
	}
	root, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%w (mounting it here: %w)", ErrNoCgroup, err)
	}
	f := os.NewFile(uintptr(root), "cgroup2")
	if !isCgroupRoot(f) {
		f.Close()
		return nil, ErrNoCgroup
	}
	return f, nil
}
