package xdp

import (
	"testing"

	"github.com/cilium/ebpf"
)

// TestVerifier: every program stays far from the verifier's limit of a million
// instructions, so that a small change does not make it unloadable on another kernel.
func TestVerifier(t *testing.T) {
	o := open(t, mountBPF(t))
	for name, p := range map[string]*ebpf.Program{
		"from_pod": o.bpf.FromPod, "from_uplink": o.bpf.FromUplink, "to_port": o.bpf.ToPort,
		"from_host": o.bpf.FromHost, "from_go": o.bpf.FromGo, "to_go": o.bpf.ToGo,
	} {
		loaded, err := p.Info()
		if err != nil {
			t.Fatal(err)
		}
		n, ok := loaded.VerifiedInstructions()
		if !ok {
			t.Skip("this kernel does not tell")
		}
		t.Logf("%s: %d instructions verified", name, n)
		if n > 250_000 {
			t.Errorf("%s: the verifier walked %d instructions, want at most 250000", name, n)
		}
	}
}
