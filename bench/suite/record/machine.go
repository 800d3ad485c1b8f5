package record

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Revision of the sources; the linker sets it.
var Revision = "unknown"

// ThisMachine looks at the machine. What cannot be read is left empty.
func ThisMachine() Machine {
	m := Machine{CPU: processor(), Cores: runtime.NumCPU(), Go: runtime.Version(), Revision: Revision, LoadStart: LoadAverage()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) == nil {
		m.MemoryMiB = int(i.Totalram * uint64(i.Unit) >> 20)
	}
	return m
}

// processor is the model name; architectures other than x86 have none there.
func processor() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return runtime.GOARCH
}

// LoadAverage is the mean number of runnable tasks of the last minute.
func LoadAverage() float64 {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d processors, %d MiB, kernel %s, %s, revision %s, load %.1f to %.1f",
		m.CPU, m.Cores, m.MemoryMiB, m.Kernel, m.Go, m.Revision, m.LoadStart, m.LoadEnd)
}
