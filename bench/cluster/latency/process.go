package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process finds a program of the side's node, as the machine numbers it.
func (s *side) process(program string) (int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.node.PID()))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // of a thread that ended
		}
		for _, word := range strings.Fields(string(text)) {
			line, _ := os.ReadFile(filepath.Join("/proc", word, "cmdline"))
			name, _, _ := strings.Cut(string(line), "\x00")
			if filepath.Base(name) == program {
				return strconv.Atoi(word)
			}
		}
	}
	return 0, fmt.Errorf("%s does not run on %s", program, s.node.Name)
}

// halt stops what follows the API, and resume lets it go on. Packets are carried all the time.
func (s *side) halt() error   { return s.signal(unix.SIGSTOP) }
func (s *side) resume() error { return s.signal(unix.SIGCONT) }

func (s *side) signal(sig unix.Signal) error {
	pid, err := s.process(s.runs.control())
	if err != nil {
		return err
	}
	return unix.Kill(pid, sig)
}

// memory of a process in MiB.
type memory struct {
	own    float64 // resident, without mapped BPF maps
	mapped float64 // of BPF maps, resident
	peak   float64 // the most that both were together
}

func memoryOf(pid int) (m memory, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return m, err
	}
	fields := numbers(string(status))
	m.mapped = mappedMaps(string(maps)) / 1024
	m.own, m.peak = fields["VmRSS"]/1024-m.mapped, fields["VmHWM"]/1024
	return m, nil
}

// mappedMaps is what of BPF maps is resident in a process, in KiB, from its smaps.
func mappedMaps(smaps string) (sum float64) {
	inside := false
	for line := range strings.Lines(smaps) {
		first, _, _ := strings.Cut(line, " ")
		switch {
		case !strings.HasSuffix(first, ":"): // a mapping begins
			inside = strings.Contains(line, "bpf-map")
		case inside && first == "Rss:":
			sum += numbers(line)["Rss"]
		}
	}
	return sum
}

// numbers are those in lines of /proc/PID/status and its like.
func numbers(text string) map[string]float64 {
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		words := strings.Fields(rest)
		if len(words) == 0 {
			continue
		}
		if n, err := strconv.ParseFloat(words[0], 64); err == nil {
			out[name] = n
		}
	}
	return out
}

// maps is the kernel memory of the BPF maps that a process holds, in MiB.
func maps(pid int) (float64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return 0, err
	}
	each := map[float64]float64{} // by number of the map, which several files may be
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // closed meanwhile
		}
		if f := numbers(string(text)); f["map_id"] > 0 {
			each[f["map_id"]] = f["memlock"]
		}
	}
	sum := 0.0
	for _, bytes := range each {
		sum += bytes
	}
	return sum / (1 << 20), nil
}
