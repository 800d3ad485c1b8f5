package xsk

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Everything of the package that the compiler cannot check is in this file: system calls
// that x/sys has no wrapper for, and the view of the rings' shared memory.

// registerUmem tells the kernel of the frame memory (XDP_UMEM_REG), which pins its pages.
func registerUmem(fd int, u *Umem) unix.Errno {
	reg := unix.XDPUmemReg{
		Addr:     uint64(uintptr(unsafe.Pointer(unsafe.SliceData(u.mem)))),
		Len:      u.size,
		Size:     u.chunkSize,
		Headroom: u.headroom,
	}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_UMEM_REG,
		uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	return errno
}

// getOption reads one option of SOL_XDP into v.
func getOption[T any](fd, option int, v *T) unix.Errno {
	size := uint32(unsafe.Sizeof(*v))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option),
		uintptr(unsafe.Pointer(v)), uintptr(unsafe.Pointer(&size)), 0)
	return errno
}

func kernelStatistics(fd int) (KernelStats, unix.Errno) {
	var k unix.XDPStatistics
	errno := getOption(fd, unix.XDP_STATISTICS, &k)
	return KernelStats{
		Dropped:           k.Rx_dropped,
		InvalidFill:       k.Rx_invalid_descs,
		InvalidTransmit:   k.Tx_invalid_descs,
		ReceiveRingFull:   k.Rx_ring_full,
		FillRingEmpty:     k.Rx_fill_ring_empty_descs,
		TransmitRingEmpty: k.Tx_ring_empty_descs,
	}, errno
}

// mapRings maps the four rings; their sizes have been set.
func (s *Socket) mapRings(c *Config) error {
	var off unix.XDPMmapOffsets
	if errno := getOption(s.fd, unix.XDP_MMAP_OFFSETS, &off); errno != 0 {
		return errno
	}
	var err error
	if s.fill.ring, s.fill.entries, err = mapRing[uint64](s, unix.XDP_UMEM_PGOFF_FILL_RING, &off.Fr, c.Fill); err != nil {
		return err
	}
	if s.completion.ring, s.completion.entries, err = mapRing[uint64](s, unix.XDP_UMEM_PGOFF_COMPLETION_RING, &off.Cr, c.Completion); err != nil {
		return err
	}
	if s.rx.ring, s.rx.entries, err = mapRing[unix.XDPDesc](s, unix.XDP_PGOFF_RX_RING, &off.Rx, c.Receive); err != nil {
		return err
	}
	s.tx.ring, s.tx.entries, err = mapRing[unix.XDPDesc](s, unix.XDP_PGOFF_TX_RING, &off.Tx, c.Transmit)
	return err
}

// mapRing maps one ring of n entries and points into it. The pointers stay valid until the
// mapping, which s.maps keeps, is undone; it is not memory of the Go heap.
func mapRing[E uint64 | unix.XDPDesc](s *Socket, page int64, off *unix.XDPRingOffset, n int) (ring, []E, error) {
	var e E
	m, err := unix.Mmap(s.fd, page, int(off.Desc)+n*int(unsafe.Sizeof(e)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return ring{}, nil, err
	}
	s.maps = append(s.maps, m)
	r := ring{
		producer: (*atomic.Uint32)(unsafe.Pointer(&m[off.Producer])),
		consumer: (*atomic.Uint32)(unsafe.Pointer(&m[off.Consumer])),
		flags:    (*atomic.Uint32)(unsafe.Pointer(&m[off.Flags])),
		size:     uint32(n),
	}
	r.prod, r.cons = r.producer.Load(), r.consumer.Load()
	return r, unsafe.Slice((*E)(unsafe.Pointer(&m[off.Desc])), n), nil
}

// sendNothing and receiveNothing are the calls that make the kernel look at the rings. Both
// are raw system calls: MSG_DONTWAIT makes them return without sleeping, and a raw call
// keeps the Go scheduler from giving the worker's place away meanwhile.
func sendNothing(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

func receiveNothing(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}
