package preflight

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// needs are the abilities that the claim programs, the trunk and the flow table rest on.
// That tcx exists cannot be probed without attaching something: the kernel's version
// stands for it.
var needs = []struct {
	name  string
	probe func() error
}{
	{"AF_XDP sockets (CONFIG_XDP_SOCKETS)", haveAFXDP},
	{"XDP programs", func() error { return features.HaveProgramType(ebpf.XDP) }},
	{"tc programs", func() error { return features.HaveProgramType(ebpf.SchedCLS) }},
	{"XSKMAP", func() error { return features.HaveMapType(ebpf.XSKMap) }},
	{"mappable BPF arrays", func() error { return features.HaveMapFlag(features.BPF_F_MMAPABLE) }},
	{"bpf_redirect_peer", func() error { return features.HaveProgramHelper(ebpf.SchedCLS, asm.FnRedirectPeer) }},
	{"bpf_redirect_neigh", func() error { return features.HaveProgramHelper(ebpf.SchedCLS, asm.FnRedirectNeigh) }},
	{"bounded loops in BPF", features.HaveBoundedLoops},
}

func lookAtFeatures() []Feature {
	out := make([]Feature, len(needs))
	for i, n := range needs {
		err := n.probe()
		out[i] = Feature{Name: n.name, Unknown: errors.Is(err, unix.EPERM)}
		switch {
		case errors.Is(err, ebpf.ErrNotSupported):
			out[i].Error = "not in this kernel"
		case err != nil:
			out[i].Error = err.Error()
		}
	}
	return out
}

func haveAFXDP() error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return fmt.Errorf("AF_XDP: %w", ebpf.ErrNotSupported)
	}
	if err != nil {
		return fmt.Errorf("AF_XDP socket: %w", err)
	}
	return unix.Close(fd)
}
