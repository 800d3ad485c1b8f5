package preflight

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/slowpath/kubeproxy"
	"lace-cni.io/lace/xdp"
)

// Look sees what there is to see. It never fails: what cannot be seen is missing from the
// facts, and Judge says so.
func Look(p Places) Facts {
	f := Facts{
		Places:       p,
		Kernel:       kernelRelease(),
		MissingCaps:  testenv.Missing(),
		Features:     lookAtFeatures(),
		BPFFSMounted: isBPFFS(p.BPFFS),
		MemlockBytes: memlock(),
		Forwarding:   lookAtForwarding(),
		Devices:      lookAtDevices(),
		Pins:         lookAtPins(p.BPFFS),
		Agent:        askAgent(p.StateDir),
		KubeProxy:    kubeproxy.Look().Words(),
		NoCgroupRoot: lookForCgroupRoot(),
	}
	f.Fastpath = readFastpath(filepath.Join(p.StateDir, "fastpath.json"))
	if _, err := os.Stat(p.BPFFS); errors.Is(err, fs.ErrNotExist) {
		f.BPFFSAbsent = true
	}
	lock := filepath.Join(p.StateDir, "fastpath.lock")
	if f.FastpathAlive = isLocked(lock); f.FastpathAlive {
		f.FastpathApart = apart(lock)
	}
	return f
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

func isBPFFS(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && uint32(st.Type) == unix.BPF_FS_MAGIC
}

func memlock() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) != nil {
		return 0
	}
	return r.Cur
}

// forwardingSysctls must be 1 for a node to route its pods' packets.
var forwardingSysctls = []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"}

func lookAtForwarding() map[string]string {
	out := map[string]string{}
	for _, name := range forwardingSysctls {
		b, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/")))
		if err != nil {
			out[name] = "absent"
			continue
		}
		out[name] = strings.TrimSpace(string(b))
	}
	return out
}

// lookAtPins lists what is pinned for Lace, by path under the BPF file system.
func lookAtPins(bpffs string) (out []string) {
	filepath.WalkDir(filepath.Join(bpffs, "lace"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(bpffs, path)
			out = append(out, rel)
		}
		return nil
	})
	return out
}

func readFastpath(path string) *Fastpath {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var f Fastpath
	if json.Unmarshal(b, &f) != nil {
		return nil
	}
	return &f
}

// isLocked says whether another process holds the lock on a file.
func isLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

func lookForCgroupRoot() string {
	if err := xdp.ReachCgroupRoot(); err != nil {
		return err.Error()
	}
	return ""
}
