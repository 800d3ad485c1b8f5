package load

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// testRun is BPF_PROG_TEST_RUN of an XDP program with live frames. The call is made here,
// and not by the ebpf package, because that begins again from the first frame when a signal
// comes, without an end when signals keep coming; here the caller decides.
type testRun struct {
	frame [FrameLength]byte
	md    xdpMD
	attr  testAttr
}

// xdpMD is struct xdp_md.
type xdpMD struct{ Start, End, Meta, Ingress, Queue, Egress uint32 }

// testAttr is the part of union bpf_attr (linux/bpf.h) that the command reads.
type testAttr struct {
	program, result         uint32
	frameIn, frameOut       uint32 // sizes
	frame, frameBack        uint64
	repeat, duration        uint32
	contextIn, contextOut   uint32 // sizes
	context, contextBack    uint64
	flags, processor, batch uint32
	_                       uint32
}

const (
	testRunCommand = 10     // BPF_PROG_TEST_RUN
	liveFrames     = 1 << 1 // BPF_F_TEST_XDP_LIVE_FRAMES
	batchFrames    = 64     // that the kernel makes before it lets softirqs run
)

func newTestRun(program, device int) testRun {
	return testRun{
		md: xdpMD{End: FrameLength, Ingress: uint32(device)},
		attr: testAttr{
			program: uint32(program), frameIn: FrameLength, contextIn: uint32(unsafe.Sizeof(xdpMD{})),
			flags: liveFrames, batch: batchFrames,
		},
	}
}

// run makes n frames. EINTR: a signal came, and fewer were made.
func (t *testRun) run(n int) unix.Errno {
	t.attr.repeat = uint32(n)
	t.attr.frame = uint64(uintptr(unsafe.Pointer(&t.frame)))
	t.attr.context = uint64(uintptr(unsafe.Pointer(&t.md)))
	_, _, errno := unix.Syscall(unix.SYS_BPF, testRunCommand, uintptr(unsafe.Pointer(&t.attr)), unsafe.Sizeof(t.attr))
	runtime.KeepAlive(t)
	return errno
}
