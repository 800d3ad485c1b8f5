package xdp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// ErrKernel means that the running kernel lacks what Lace stands on.
var ErrKernel = errors.New("kernel too old")

// probe finds out whether the kernel has tcx (Linux 6.6, or a distribution's backport) by
// asking for it: on a device that cannot exist, so that nothing is attached.
func probe() error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         "lace_probe",
		Type:         ebpf.SchedCLS,
		AttachType:   ebpf.AttachTCXIngress,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "GPL",
	})
	if err != nil {
		return fmt.Errorf("BPF programs cannot be loaded (CAP_BPF and CAP_NET_ADMIN, or root, are needed): %w", err)
	}
	defer p.Close()
	const nowhere = 1<<31 - 1
	l, err := link.AttachTCX(link.TCXOptions{Interface: nowhere, Program: p, Attach: ebpf.AttachTCXIngress})
	if err == nil {
		return errors.Join(fmt.Errorf("interface index %d exists; tcx cannot be probed", nowhere), l.Close())
	}
	if errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("kernel %s has no tcx: %w; Lace needs Linux 6.6 or newer", release(), ErrKernel)
	}
	return nil
}

func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "of unknown version"
	}
	return unix.ByteSliceToString(u.Release[:])
}
