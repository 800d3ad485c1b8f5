package kubeproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The older iptables, of one family (linux/netfilter_ipv4/ip_tables.h, and its twin for
// IPv6): tables are read through options of a raw socket.
type legacy struct {
	program string // what sets it
	family  int    // of the socket
	level   int    // of the options
	names   string // file that lists the tables there are
}

var legacies = []legacy{
	{"iptables", unix.AF_INET, unix.IPPROTO_IP, "/proc/thread-self/net/ip_tables_names"},
	{"ip6tables", unix.AF_INET6, unix.IPPROTO_IPV6, "/proc/thread-self/net/ip6_tables_names"},
}

const (
	optionInfo    = 64 // IPT_SO_GET_INFO
	optionEntries = 65 // IPT_SO_GET_ENTRIES

	nameSize   = 32           // XT_TABLE_MAXNAMELEN
	infoSize   = 84           // struct ipt_getinfo
	sizeOffset = 80           // of the entries' size in it
	headerSize = nameSize + 8 // struct ipt_get_entries before the entries: name, size, padding
)

// legacyNames finds kube-proxy's chain in tables of the older iptables.
func legacyNames() (signs []string) {
	for _, l := range legacies {
		b, _ := os.ReadFile(l.names) // without the module there is no file, and no table
		if slices.Contains(strings.Fields(string(b)), "nat") && l.hasChain("nat", servicesChain) {
			signs = append(signs, "chain "+servicesChain+" of "+l.program)
		}
	}
	return signs
}

// hasChain looks for a chain by the name that its first entry bears: what is a chain of its
// own begins with an entry that holds nothing else.
func (l legacy) hasChain(table, chain string) bool {
	fd, err := unix.Socket(l.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	for range 8 { // the table may change between the two questions
		info := make([]byte, infoSize)
		copy(info[:nameSize-1], table)
		if getsockopt(fd, l.level, optionInfo, info) != nil {
			return false
		}
		size := binary.NativeEndian.Uint32(info[sizeOffset:])
		entries := make([]byte, headerSize+int(size))
		copy(entries[:nameSize-1], table)
		binary.NativeEndian.PutUint32(entries[nameSize:], size)
		err := getsockopt(fd, l.level, optionEntries, entries)
		if err == nil {
			return bytes.Contains(entries[headerSize:], append([]byte(chain), 0))
		}
		if !errors.Is(err, unix.EAGAIN) {
			return false
		}
	}
	return false
}

// getsockopt reads an option whose buffer also says what is asked for. b is not empty.
func getsockopt(fd, level, option int, b []byte) error {
	size := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
