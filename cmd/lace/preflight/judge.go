package preflight

import (
	"fmt"
	"strings"
)

// Judge turns facts into findings, in the order in which they should be mended.
func Judge(f Facts) (out []Finding) {
	out = append(out, judgeKernel(f.Kernel))
	out = append(out, judgeFeatures(f.Features)...)
	out = append(out, judgeCapabilities(f.MissingCaps), judgeMemlock(f), judgeBPFFS(f))
	out = append(out, judgeForwarding(f.Forwarding)...)
	out = append(out, judgeCgroup(f.NoCgroupRoot), judgeKubeProxy(f.KubeProxy), judgeFastpath(f))
	out = append(out, judgeTrunk(&f)...)
	out = append(out, judgeDevices(&f)...)
	return append(out, judgeAgent(&f)...)
}

// The oldest kernel with tcx, on which every claim rests.
const oldestMajor, oldestMinor = 6, 6

func judgeKernel(release string) Finding {
	const check = "kernel"
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return warn(check, fmt.Sprintf("release %q cannot be read", release), "Lace needs Linux 6.6 or newer")
	}
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return fail(check, release+": older than 6.6, has no tcx", "run Linux 6.6 or newer")
	}
	return ok(check, release)
}

// judgeFeatures is one line when all is well, one for each thing that is missing, and one
// for all that cannot be seen.
func judgeFeatures(features []Feature) (out []Finding) {
	const check = "kernel features"
	var unknown []string
	for _, feature := range features {
		switch {
		case feature.Unknown:
			unknown = append(unknown, feature.Name)
		case feature.Error != "":
			out = append(out, fail(check, feature.Name+": "+feature.Error, "run a kernel that has it"))
		}
	}
	if len(unknown) > 0 {
		out = append(out, warn(check, "cannot be probed without privileges: "+strings.Join(unknown, ", "), "run lace check as root"))
	}
	if len(out) == 0 {
		out = append(out, ok(check, fmt.Sprintf("all %d that Lace needs", len(features))))
	}
	return out
}

func judgeCapabilities(missing []string) Finding {
	const check = "capabilities"
	if len(missing) > 0 {
		return fail(check, "missing "+strings.Join(missing, ", "), "run as root, or give them to the process")
	}
	return ok(check, "all there")
}

// memlockEnough holds the frames and maps of a node with one worker.
const memlockEnough = 64 << 20

func judgeMemlock(f Facts) Finding {
	const check = "locked memory"
	for _, m := range f.MissingCaps {
		if strings.HasPrefix(m, "CAP_IPC_LOCK") && f.MemlockBytes < memlockEnough {
			return fail(check, fmt.Sprintf("limit of %d KiB", f.MemlockBytes>>10), "give the process CAP_IPC_LOCK")
		}
	}
	if f.MemlockBytes == ^uint64(0) {
		return ok(check, "no limit")
	}
	return ok(check, fmt.Sprintf("limit of %d KiB, which CAP_IPC_LOCK lifts", f.MemlockBytes>>10))
}

func judgeBPFFS(f Facts) Finding {
	const check = "bpf file system"
	if !f.BPFFSMounted {
		do := "mount -t bpf bpf " + f.Places.BPFFS
		if f.BPFFSAbsent {
			do = "mkdir -p " + f.Places.BPFFS + " && " + do
		}
		return fail(check, "none at "+f.Places.BPFFS, do)
	}
	return ok(check, f.Places.BPFFS)
}

func judgeForwarding(values map[string]string) (out []Finding) {
	for _, name := range forwardingSysctls {
		switch v := values[name]; v {
		case "1":
			out = append(out, ok("forwarding", name+" = 1"))
		case "absent":
			out = append(out, warn("forwarding", name+" does not exist", "this family cannot be routed on this node"))
		default:
			out = append(out, fail("forwarding", fmt.Sprintf("%s = %s", name, v), "sysctl -w "+name+"=1, and write it to /etc/sysctl.d"))
		}
	}
	return out
}

func judgeKubeProxy(signs []string) Finding {
	const check = "kube-proxy"
	if len(signs) > 0 {
		return fail(check, "found: "+strings.Join(signs, ", "),
			"two programs would carry the same Services: docs/how-to/replace-kube-proxy.md has every step, beginning with lace-agent --beside-kube-proxy beside the one that runs")
	}
	return ok(check, "no sign of it")
}

// judgeCgroup is about the programs by which the node's own processes reach its node ports;
// nothing else needs them.
func judgeCgroup(why string) Finding {
	const check = "cgroup root"
	if why != "" {
		return warn(check, "the node's own processes would not reach its node ports: "+why,
			"run lace check where lace-fastpath is to run, as root; there, mount the node's /sys/fs/cgroup")
	}
	return ok(check, "in reach, for the node's own node ports")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// judgeFastpath says who is using the pins.
func judgeFastpath(f Facts) Finding {
	const check = "fast path"
	switch {
	case f.FastpathApart != 0:
		return warn(check, fmt.Sprintf("process %d runs, in another network namespace than this command: what is said here of forwarding, trunk and devices is not about it", f.FastpathApart),
			fmt.Sprintf("ask there: nsenter --net --target %d lace check --state-dir %s", f.FastpathApart, f.Places.StateDir))
	case f.Agent.Simulated:
		return ok(check, "simulated, by a demo in memory: nothing of it is on this machine")
	case f.FastpathAlive && f.Fastpath != nil:
		p := f.Fastpath
		return ok(check, fmt.Sprintf("runs: process %d, XDP %s, sockets %s, %s on %s",
			p.PID, p.XDPMode, p.SocketMode, counted(p.Workers, "worker"), counted(p.Queues, "queue")))
	case f.FastpathAlive:
		return ok(check, "runs")
	case len(f.Pins) > 0:
		return warn(check, fmt.Sprintf("does not run, but %d objects are pinned in %s/lace: new connections to Services are dropped meanwhile",
			len(f.Pins), f.Places.BPFFS),
			"start lace-fastpath, which takes them over; or lace-fastpath --cleanup to remove them")
	}
	return ok(check, "does not run, and nothing is pinned")
}
