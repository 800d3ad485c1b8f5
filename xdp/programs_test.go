package xdp

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/xdp/bpf"
)

// TestProgramsAreKept: what the verifier has passed once is not given to it again, and a
// device goes on with the very program that it has.
func TestProgramsAreKept(t *testing.T) {
	bpffs := mountBPF(t)
	o := open(t, bpffs)
	before := programIDs(t, o)
	must(t, o.Close())
	o = open(t, bpffs)
	if d := cmp.Diff(before, programIDs(t, o)); d != "" {
		t.Errorf("other programs than before (-before +now)\n%s", d)
	}
}

// TestDamagedProgramPins: whatever lies in the place of a program, and programs of another
// build, cost the loading and nothing else. The next start finds them kept.
func TestDamagedProgramPins(t *testing.T) {
	digest := bpf.LaceDigest()
	for does, c := range map[string]struct {
		damage func(t *testing.T, o *Objects, p pins)
		says   string
	}{
		"one is missing": {func(t *testing.T, o *Objects, p pins) {
			must(t, os.Remove(p.programPath(digest, "to_port")))
		}, ""},
		"all are missing": {func(t *testing.T, o *Objects, p pins) {
			must(t, os.RemoveAll(p.programs()))
		}, ""},
		"they are another build's": {func(t *testing.T, o *Objects, p pins) {
			must(t, os.Rename(p.programPath(digest, ""), p.programPath("0123456789abcdef", "")))
		}, ""},
		"a map in the place of one": {func(t *testing.T, o *Objects, p pins) {
			must(t, os.Remove(p.programPath(digest, "from_pod")))
			must(t, pinMap(o.bpf.Claims, p.programPath(digest, "from_pod")))
		}, "from_pod"},
		"a directory in the place of one": {func(t *testing.T, o *Objects, p pins) {
			must(t, os.Remove(p.programPath(digest, "from_go")))
			must(t, os.Mkdir(p.programPath(digest, "from_go"), 0o700))
		}, "from_go"},
		"another of the same name and type": {func(t *testing.T, o *Objects, p pins) {
			must(t, os.Remove(p.programPath(digest, "from_pod")))
			other, err := ebpf.NewProgram(&ebpf.ProgramSpec{
				Name: "from_pod", Type: ebpf.SchedCLS, License: "GPL",
				Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
			})
			must(t, err)
			defer other.Close()
			must(t, other.Pin(p.programPath(digest, "from_pod")))
		}, "another program of that name"},
		"one in the place of another": {func(t *testing.T, o *Objects, p pins) {
			must(t, os.Remove(p.programPath(digest, "from_pod")))
			again, err := o.bpf.ToPort.Clone()
			must(t, err)
			defer again.Close()
			must(t, again.Pin(p.programPath(digest, "from_pod")))
		}, `a program \"to_port\"`},
	} {
		t.Run(does, func(t *testing.T) {
			bpffs := mountBPF(t)
			o := open(t, bpffs)
			p := pinsUnder(bpffs)
			c.damage(t, o, p)
			must(t, o.Close())

			var log bytes.Buffer
			again, err := Open(Config{BPFFS: bpffs, FlowSlots: 1024, Log: slog.New(slog.NewTextHandler(&log, nil))})
			must(t, err)
			if d := cmp.Diff(Opened{Kept: true}, again.Opened()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if !strings.Contains(log.String(), c.says) || c.says == "" && log.Len() > 0 {
				t.Errorf("the log says %q, want it to say %q", log.String(), c.says)
			}
			must(t, again.Close())
			if builds, err := filepath.Glob(p.programPath("*", "")); err != nil || len(builds) != 1 {
				t.Errorf("programs of builds %v are pinned, want one: %v", builds, err)
			}
			if o := open(t, bpffs); !o.Opened().Programs {
				t.Error("the next start loads them once more")
			}
		})
	}
}

// programIDs are what the kernel calls the programs, by name.
func programIDs(t *testing.T, o *Objects) map[string]ebpf.ProgramID {
	t.Helper()
	ids := map[string]ebpf.ProgramID{}
	for name, p := range programs(&o.bpf.LacePrograms) {
		what, err := (*p).Info()
		must(t, err)
		ids[name], _ = what.ID()
	}
	return ids
}
