package hostport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"lace-cni.io/lace/control/model"
)

// Port is one that a process of the node listens on.
type Port struct {
	Protocol model.Protocol
	Number   uint16
}

// The kernel's lists, and the state of a socket that waits for somebody (tcp_states.h).
var lists = []struct {
	name     string
	protocol model.Protocol
	state    string
}{{"tcp", model.TCP, "0A"}, {"tcp6", model.TCP, "0A"}, {"udp", model.UDP, "07"}, {"udp6", model.UDP, "07"}}

// Listening reads the lists under proc, usually /proc/thread-self/net. Sockets that are
// bound to a loopback address are left out: packets of a network do not reach them. A
// family that the kernel lacks has no list, which is no error.
func Listening(proc string) (map[Port]bool, error) {
	out := map[Port]bool{}
	for _, l := range lists {
		f, err := os.Open(filepath.Join(proc, l.name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sockets of the node: %w", err)
		}
		err = read(f, l.state, func(port uint16) { out[Port{l.protocol, port}] = true })
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("sockets of the node, %s: %w", l.name, err)
		}
	}
	return out, nil
}

// read goes through one list. The kernel puts listening TCP sockets first; from the first
// other one on there is nothing more to see.
func read(r io.Reader, state string, yield func(port uint16)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || words[0] == "sl" {
			continue
		}
		if words[3] != state {
			if state == "0A" {
				return nil
			}
			continue
		}
		if port, ok := portOf(words[1]); ok {
			yield(port)
		}
	}
	return lines.Err()
}

// portOf reads ADDRESS:PORT in the kernel's hexadecimal words; false: loopback, or no such.
func portOf(s string) (uint16, bool) {
	addr, text, found := strings.Cut(s, ":")
	port, err := strconv.ParseUint(text, 16, 16)
	if !found || err != nil || port == 0 || isLoopback(addr) {
		return 0, false
	}
	return uint16(port), true
}

// isLoopback knows 127.0.0.0/8 and ::1, words in the byte order of a little-endian machine.
func isLoopback(addr string) bool {
	return len(addr) == 8 && strings.HasSuffix(addr, "7F") || addr == "00000000000000000000000001000000"
}
