package metrics

import (
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/police"
	"lace-cni.io/lace/xdp"
)

// TestDevicesOfAnyName: the kernel takes any bytes but a few in the name of a device, and
// Prometheus takes no text that is not UTF-8. Each device is there all the same, apart from the
// others.
func TestDevicesOfAnyName(t *testing.T) {
	names := map[uint16]string{2: "eth0", 3: "ev\x1b[2Jil", 4: "b\xffx", 5: "b\xfex", 6: "\"\\q"}
	r := Reading{Devices: names, Kernel: &xdp.Counters{}}
	for id := range names {
		one := xdp.Policed{Port: id}
		one.Packets[police.Ask(0)] = 7
		r.Kernel.Policed = append(r.Kernel.Policed, one)
		r.Holes = append(r.Holes, blackhole.Hole{Out: id})
	}
	m := New("v", func() Reading { return r })
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := f.GetName(); n != "lace_policed_packets_total" && n != "lace_black_holes" {
			continue
		}
		devices := map[string]bool{}
		for _, one := range f.GetMetric() {
			for _, l := range one.GetLabel() {
				if l.GetName() == "device" {
					devices[l.GetValue()] = true
				}
			}
		}
		if len(devices) != len(names) || !devices["eth0"] || !devices["ev\x1b[2Jil"] {
			t.Errorf("%s: devices %v, want all %d", f.GetName(), devices, len(names))
		}
		for d := range devices {
			if strings.Contains(d, "\ufffd") && !strings.HasSuffix(d, "x (port 4)") && !strings.HasSuffix(d, "x (port 5)") {
				t.Errorf("%s: device %q does not say which one it is", f.GetName(), d)
			}
		}
	}
}
