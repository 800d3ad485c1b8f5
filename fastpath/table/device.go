package table

import (
	"bytes"
	"fmt"
)

// Device is the name of the port's device, "" when it has none.
func (p *Port) Device() string {
	name, _, _ := bytes.Cut(p.Name[:], []byte{0})
	return string(name)
}

// SetDevice puts a device name into the port. The kernel's limit of 15 bytes
// (IFNAMSIZ less the closing zero) and its forbidden bytes apply.
func (p *Port) SetDevice(name string) error {
	if len(name) >= len(p.Name) {
		return fmt.Errorf("device name %q has %d bytes, the kernel allows %d", name, len(name), len(p.Name)-1)
	}
	p.Name = [16]byte{}
	copy(p.Name[:], name)
	return p.checkDevice()
}

// checkDevice holds a name to the kernel's own rules (dev_valid_name), and to no others: it
// takes control characters and bytes that are no UTF-8, which whoever shows a name has to mind.
func (p *Port) checkDevice() error {
	name := p.Device()
	if len(name) == len(p.Name) {
		return fmt.Errorf("device name %q is not closed by a zero byte", name)
	}
	if name == "." || name == ".." {
		return fmt.Errorf("device name %q is not one the kernel allows", name)
	}
	for _, c := range []byte(name) {
		if isSpace(c) || c == '/' || c == ':' {
			return fmt.Errorf("device name %q holds byte %#02x, which the kernel does not allow", name, c)
		}
	}
	for _, c := range p.Name[len(name):] {
		if c != 0 {
			return fmt.Errorf("device name %q is followed by byte %#02x instead of zeros", name, c)
		}
	}
	return nil
}

// isSpace is that of the kernel, whose characters are those of Latin-1.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0xa0 }
