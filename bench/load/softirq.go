package load

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// softirqsApart reports whether the kernel leaves the time of softirqs out of the accounts
// of threads (CONFIG_IRQ_TIME_ACCOUNTING). It is told by the kernel's configuration; where
// that cannot be read, the usual answer is given: they are in.
var softirqsApart = sync.OnceValue(func() bool {
	const option = "CONFIG_IRQ_TIME_ACCOUNTING=y"
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		if b, err := os.ReadFile("/boot/config-" + unix.ByteSliceToString(u.Release[:])); err == nil {
			return bytes.Contains(b, []byte(option))
		}
	}
	f, err := os.Open("/proc/config.gz")
	if err != nil {
		return false
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return false
	}
	b, err := io.ReadAll(z)
	return err == nil && bytes.Contains(b, []byte(option))
})

// userTick is the unit of /proc/stat: USER_HZ is 100 on every architecture of Go.
const userTick = 10 * time.Millisecond

// interruptTime is the time that a processor has spent in interrupts and softirqs.
func interruptTime(cpu int) (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	name := "cpu" + strconv.Itoa(cpu)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 8 || f[0] != name {
			continue
		}
		hard, err1 := strconv.ParseInt(f[6], 10, 64)
		soft, err2 := strconv.ParseInt(f[7], 10, 64)
		if err1 != nil || err2 != nil {
			return 0, fmt.Errorf("/proc/stat: %q", line)
		}
		return time.Duration(hard+soft) * userTick, nil
	}
	return 0, fmt.Errorf("/proc/stat has no processor %d", cpu)
}
