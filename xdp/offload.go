package xdp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtool switches (linux/ethtool.h) that the trunk needs.
const (
	getTxChecksum = 0x16 // ETHTOOL_GTXCSUM
	setTxChecksum = 0x17 // ETHTOOL_STXCSUM
	getGRO        = 0x2b // ETHTOOL_GGRO
	setGRO        = 0x2c // ETHTOOL_SGRO
)

// ethtoolValue is struct ethtool_value.
type ethtoolValue struct{ cmd, value uint32 }

// ifreq is struct ifreq with its pointer member.
type ifreq struct {
	name  [unix.IFNAMSIZ]byte
	value *ethtoolValue
	_     [16]byte
}

// setOffload sets one switch of a device in the calling thread's network namespace and
// reads it back, for a driver may refuse quietly.
func setOffload(device string, get, set, want uint32) error {
	have, err := ethtool(device, ethtoolValue{cmd: get})
	if err == nil && have == want {
		return nil
	}
	if _, err := ethtool(device, ethtoolValue{cmd: set, value: want}); err != nil {
		return fmt.Errorf("offload %#x of %s to %d: %w", set, device, want, err)
	}
	if have, err = ethtool(device, ethtoolValue{cmd: get}); err != nil || have != want {
		return fmt.Errorf("offload %#x of %s stays %d, want %d (%v)", set, device, have, want, err)
	}
	return nil
}

func ethtool(device string, v ethtoolValue) (uint32, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	r := ifreq{value: &v}
	copy(r.name[:unix.IFNAMSIZ-1], device)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return 0, errno
	}
	return v.value, nil
}
