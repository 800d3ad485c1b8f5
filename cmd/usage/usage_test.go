package usage

import (
	"flag"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	f := flag.NewFlagSet("laced", flag.ContinueOnError)
	f.String("bpffs", "/sys/fs/bpf", "`directory` to pin in")
	f.Bool("cleanup", false, "remove everything, and end")
	f.String("node-name", "", "`name` of the node")
	var b strings.Builder
	Write(&b, f, "does things")
	want := `laced does things.

Usage: laced [flags]

Flags:
  --bpffs directory
        directory to pin in (default /sys/fs/bpf)
  --cleanup
        remove everything, and end
  --node-name name
        name of the node
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", &b, want)
	}
}
