package xsk

// KernelStats are the kernel's counters of a socket (XDP_STATISTICS of linux/if_xdp.h),
// since the socket was opened.
type KernelStats struct {
	Dropped           uint64 // frames lost because they were longer than Umem.MaxFrame, or had no chunk (FillRingEmpty)
	InvalidFill       uint64 // entries of the fill ring that the kernel refused
	InvalidTransmit   uint64 // entries of the TX ring that the kernel refused
	ReceiveRingFull   uint64 // frames lost because the owner did not Receive in time
	FillRingEmpty     uint64 // frames for which no chunk was there: the owner did not Refill in time
	TransmitRingEmpty uint64 // times that the kernel looked for frames to send and found none
}

// Lost is how many frames arrived at the queue and were lost before Receive. Dropped holds
// the frames of FillRingEmpty already.
func (k KernelStats) Lost() uint64 { return k.Dropped + k.ReceiveRingFull }

// Stats are the counters of a socket since it was opened.
type Stats struct {
	Kernel KernelStats

	Received    uint64 // frames handed out by Receive
	Transmitted uint64 // frames taken by Transmit
	Completed   uint64 // chunks taken back by Complete, sent or dropped by the device

	Kicks           uint64 // system calls made to send
	KicksSuppressed uint64 // Kicks that needed no system call
	ReceiveKicks    uint64 // system calls made to announce chunks to receive into
	Again           uint64 // sends answered EAGAIN: budget used up, or completions or socket memory short
	NoMemory        uint64 // sends answered ENOBUFS or ENOMEM
	DeviceDrops     uint64 // sends answered EBUSY; in copy mode each is one frame that the device dropped
	Polls           uint64 // times Wait asked the kernel
	Timeouts        uint64 // Polls that ended without an event

	Malformed uint64 // descriptors from the kernel that named no frame of this socket
	Refused   uint64 // frames that Transmit refused with ErrFrame
}

// Stats reads the counters: one system call. For the owner only, as everything of a socket.
// On a closed socket it returns the last own counters with ErrClosed.
func (s *Socket) Stats() (Stats, error) {
	if s.fd < 0 {
		return s.stats, s.closed("read statistics")
	}
	st := s.stats
	k, errno := kernelStatistics(s.fd)
	if errno != 0 {
		return st, s.fault("read statistics", errno)
	}
	st.Kernel = k
	return st, nil
}
