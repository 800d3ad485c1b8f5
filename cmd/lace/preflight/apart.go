package preflight

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// apart is the process that holds the lock on a file, when it is in another network namespace
// than this command. 0: it is in the same one, or that cannot be seen.
func apart(lock string) int {
	pid := holder(lock)
	here, err := os.Readlink("/proc/self/ns/net")
	if pid == 0 || err != nil {
		return 0
	}
	there, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil || there == here {
		return 0
	}
	return pid
}

// holder is the process that holds the lock on a file by flock(2), by its number in this
// command's PID namespace, which may be another one than what the process itself knows.
// 0: nobody, or nobody who can be seen from here.
func holder(path string) int {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	return holderIn(string(b), file)
}

// holderIn finds in the text of /proc/locks (proc_locks(5)) who holds a file, which is named by
// major and minor number and inode.
func holderIn(locks, file string) int {
	for line := range strings.Lines(locks) {
		// "2: FLOCK  ADVISORY  WRITE 3172 fd:01:1048 0 EOF"; waiters have "->" before FLOCK.
		words := strings.Fields(line)
		if len(words) < 6 || words[1] != "FLOCK" || words[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(words[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
