// Package testenv decides whether a test may run on this machine.
//
// A test that needs a privilege says so by calling Privileged. Where the privilege is
// missing the test is skipped and the message names it, unless the environment sets
// LACE_REQUIRE_PRIVILEGED=1: then the skip is a failure, so that a run which was meant
// to be complete cannot pass without its kernel tests.
package testenv

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var needed = []struct {
	bit  uint
	name string
	why  string
}{
	{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "network namespaces, links and XDP"},
	{unix.CAP_NET_RAW, "CAP_NET_RAW", "AF_XDP sockets"},
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "network namespaces and mounts"},
	{unix.CAP_BPF, "CAP_BPF", "BPF programs and maps"},
	{unix.CAP_IPC_LOCK, "CAP_IPC_LOCK", "AF_XDP frame memory"},
}

// Missing lists the capabilities that the kernel tests need and this process lacks,
// each with what it is for. Empty means that they can run.
func Missing() []string {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&hdr, &sets[0]); err != nil {
		return []string{fmt.Sprintf("capabilities cannot be read: %v", err)}
	}
	var out []string
	for _, n := range needed {
		if sets[n.bit/32].Effective&(1<<(n.bit%32)) == 0 {
			out = append(out, n.name+" ("+n.why+")")
		}
	}
	return out
}

// Privileged skips t when the process may not use AF_XDP, BPF and namespaces, or fails
// it when LACE_REQUIRE_PRIVILEGED=1.
func Privileged(t testing.TB) {
	t.Helper()
	m := Missing()
	if len(m) == 0 {
		return
	}
	msg := "missing " + strings.Join(m, ", ")
	if os.Getenv("LACE_REQUIRE_PRIVILEGED") == "1" {
		t.Fatal(msg + "; LACE_REQUIRE_PRIVILEGED=1 forbids the skip")
	}
	t.Skip(msg)
}
