package lab

import (
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// SendIP sends one IP packet, header included, as it is: for packets that no socket would
// send, such as one with another host's source address or one of a closed connection. The
// kernel fills in an IPv4 header checksum and routes it by its destination.
func (h *Host) SendIP(ctx context.Context, packet []byte) error {
	return h.cell.call(ctx, "Cell.SendIP", packet, &struct{}{})
}

// SendIP sends one IP packet.
func (s *cellService) SendIP(packet []byte, _ *struct{}) error {
	switch {
	case len(packet) >= 20 && packet[0]>>4 == 4:
		to := netip.AddrFrom4([4]byte(packet[16:20]))
		return sendRaw(unix.AF_INET, &unix.SockaddrInet4{Addr: to.As4()}, packet)
	case len(packet) >= 40 && packet[0]>>4 == 6:
		to := netip.AddrFrom16([16]byte(packet[24:40]))
		return sendRaw(unix.AF_INET6, &unix.SockaddrInet6{Addr: to.As16()}, packet)
	}
	return fmt.Errorf("%d bytes that are no IP packet", len(packet))
}

func sendRaw(family int, to unix.Sockaddr, packet []byte) error {
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return fmt.Errorf("raw socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, packet, 0, to); err != nil {
		return fmt.Errorf("send a packet of %d bytes: %w", len(packet), err)
	}
	return nil
}
