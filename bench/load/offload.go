package load

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offload is a switch of a device (linux/ethtool.h, the "set" commands).
type Offload uint32

const (
	TxChecksum Offload = 0x17
	TSO        Offload = 0x1f
	GSO        Offload = 0x24
	GRO        Offload = 0x2c
)

// ethtoolValue is struct ethtool_value, ifreq struct ifreq with its pointer member.
type (
	ethtoolValue struct{ command, value uint32 }
	ifreq        struct {
		name  [unix.IFNAMSIZ]byte
		value *ethtoolValue
		_     [16]byte
	}
)

// SetOffload turns a switch of a device on or off. On a veth GRO also decides whether the
// device takes frames that were redirected to it without a packet buffer.
func (s *Space) SetOffload(device string, o Offload, on bool) error {
	v := ethtoolValue{command: uint32(o)}
	if on {
		v.value = 1
	}
	err := s.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		r := ifreq{value: &v}
		copy(r.name[:unix.IFNAMSIZ-1], device)
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); e != 0 {
			return e
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s of %s: offload %#x %v: %w", device, s.name, uint32(o), on, err)
	}
	return nil
}
