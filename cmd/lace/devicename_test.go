package main

import (
	"strings"
	"testing"

	"lace-cni.io/lace/cmd/lace/preflight"
	"lace-cni.io/lace/cmd/lace/screen"
)

// TestDeviceNamesReachNoTerminal: the kernel takes ESC, C1 controls and bytes that are no UTF-8
// in the name of a device; what lace check says of it, for better or worse, shows them and
// orders nothing.
func TestDeviceNamesReachNoTerminal(t *testing.T) {
	const name, shown = "ev\x1b[2J\xc2\x9b1\xffx", `device ev\x1b[2J\u009b1\xffx`
	for _, d := range []preflight.Device{
		{Name: name, Up: true, MTU: 1500, Driver: name},
		{Name: name, Up: true, MTU: 9000, Offloads: map[string]bool{"rx-lro": true}},
	} {
		var out strings.Builder
		if err := writeFindings(&out, screen.Table, preflight.Judge(preflight.Facts{Devices: []preflight.Device{d}}), "the end"); err != nil {
			t.Fatal(err)
		}
		wantPlain(t, "check", out.String())
		if !strings.Contains(out.String(), shown) {
			t.Errorf("%q is not shown:\n%s", shown, out.String())
		}
	}
}
