package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Real-time priorities. What serves comes before what makes packets, so that a queue is
// emptied before more is put in: a closed loop.
//
// Threads of one priority take turns (SCHED_RR). With SCHED_FIFO they would not: Go's
// runtime has goroutines that call the scheduler over and over until another thread has got
// on, such as the one that sweeps memory, and on the processor that they share that thread
// would never run again.
const (
	PriorityGenerator = 1
	PriorityServer    = 2
)

// Pin binds a thread to one processor; 0 is the calling thread.
func Pin(thread, cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(thread, &set); err != nil {
		return fmt.Errorf("pin thread %d to processor %d: %w", thread, cpu, err)
	}
	return nil
}

// Prefer gives a thread a real-time priority (SCHED_RR), or the usual scheduling back with
// priority 0. 0 is the calling thread.
func Prefer(thread, priority int) error {
	policy := unix.SCHED_RR
	if priority == 0 {
		policy = unix.SCHED_NORMAL
	}
	p := int32(priority)
	if _, _, e := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(thread), uintptr(policy), uintptr(unsafe.Pointer(&p))); e != 0 {
		return fmt.Errorf("real-time priority %d for thread %d (CAP_SYS_NICE): %w", priority, thread, e)
	}
	return nil
}

// Place puts every thread of some processes on one processor, before everything that
// generates.
func Place(processes []int, cpu int) error {
	for _, t := range threads(processes) {
		if err := Pin(t, cpu); err != nil {
			return err
		}
		if err := Prefer(t, PriorityServer); err != nil {
			return err
		}
	}
	return nil
}

// Release undoes Place.
func Release(processes []int) error {
	var all unix.CPUSet
	for cpu := range runtime.NumCPU() {
		all.Set(cpu)
	}
	for _, t := range threads(processes) {
		if err := Prefer(t, 0); err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(t, &all); err != nil {
			return fmt.Errorf("free thread %d: %w", t, err)
		}
	}
	return nil
}

// threads of processes that still run; those that end meanwhile are left out.
func threads(processes []int) (out []int) {
	for _, p := range processes {
		dirs, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", p))
		for _, d := range dirs {
			if t, err := strconv.Atoi(filepath.Base(d)); err == nil {
				out = append(out, t)
			}
		}
	}
	return out
}

var softirqThreads sync.Map // by processor: looking through all processes takes long

// SoftirqThread is the kernel thread that takes over softirqs of a processor; 0: none found.
func SoftirqThread(cpu int) int {
	pid, ok := softirqThreads.Load(cpu)
	if !ok {
		pid, _ = softirqThreads.LoadOrStore(cpu, findSoftirqThread(cpu))
	}
	return pid.(int)
}

func findSoftirqThread(cpu int) int {
	want := fmt.Sprintf("ksoftirqd/%d\n", cpu)
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, n := range names {
		if b, err := os.ReadFile(n); err == nil && string(b) == want {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(n)))
			return pid
		}
	}
	return 0
}

// meter sums the processor time of the calling thread, of other processes and of the
// softirqs of its processor, wherever the kernel keeps the account of those.
type meter struct {
	cpu       int
	processes []int
	softirq   int
}

// read returns nanoseconds. The kernel brings the account of a sleeping thread up to date
// when it goes to sleep, and that of the calling one when it is asked.
func (m *meter) read() (time.Duration, error) {
	var own unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &own); err != nil {
		return 0, err
	}
	sum := own.Nano()
	others := threads(m.processes)
	if m.softirq != 0 {
		others = append(others, m.softirq)
	}
	for _, t := range others {
		ns, err := runTime(t)
		if err != nil {
			return 0, err
		}
		sum += ns
	}
	if softirqsApart() {
		apart, err := interruptTime(m.cpu)
		if err != nil {
			return 0, err
		}
		sum += int64(apart)
	}
	return time.Duration(sum), nil
}

// runTime is the first figure of /proc/T/schedstat: nanoseconds on a processor.
func runTime(thread int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", thread))
	if os.IsNotExist(err) {
		return 0, nil // it has ended
	}
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("schedstat of thread %d: %w", thread, err)
	}
	return ns, nil
}

// Descendants finds the processes below a process whose environment, as it was at their
// start, holds an entry such as "NAME=value".
func Descendants(pid int, entry string) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/children", pid))
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		for _, f := range strings.Fields(string(b)) {
			child, err := strconv.Atoi(f)
			if err != nil {
				continue
			}
			if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child)); err == nil && holds(env, entry) {
				out = append(out, child)
			}
			out = append(out, Descendants(child, entry)...)
		}
	}
	return out
}

func holds(env []byte, entry string) bool {
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if string(e) == entry {
			return true
		}
	}
	return false
}
