package netdev

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue is struct ethtool_value of linux/ethtool.h.
type ethtoolValue struct{ cmd, value uint32 }

// request is struct ifreq of linux/if.h with its pointer member.
type request struct {
	name  [unix.IFNAMSIZ]byte
	value unsafe.Pointer
	_     [16]byte // the union is larger than a pointer
}

// Offloads implements Stack.
func (k *Kernel) Offloads(device string) (Offloads, error) {
	var o Offloads
	for _, f := range []struct {
		cmd uint32
		out *bool
	}{
		{unix.ETHTOOL_GTXCSUM, &o.TxChecksum},
		{unix.ETHTOOL_GRXCSUM, &o.RxChecksum},
		{unix.ETHTOOL_GTSO, &o.Segmentation},
		{unix.ETHTOOL_GGSO, &o.Generic},
		{unix.ETHTOOL_GGRO, &o.GRO},
	} {
		v, err := k.ethtool(device, f.cmd)
		if err != nil {
			return Offloads{}, fmt.Errorf("offloads of %s: %w", device, translate(err))
		}
		*f.out = v != 0
	}
	return o, nil
}

func (k *Kernel) ethtool(device string, cmd uint32) (uint32, error) {
	if device == "" || len(device) >= unix.IFNAMSIZ {
		return 0, unix.ENODEV
	}
	v := ethtoolValue{cmd: cmd}
	var r request
	copy(r.name[:], device)
	r.value = unsafe.Pointer(&v)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(k.ioctl), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	runtime.KeepAlive(&v)
	if errno != 0 {
		return 0, errno
	}
	return v.value, nil
}
