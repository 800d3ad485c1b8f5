package right

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExplain(t *testing.T) {
	refused := &fs.PathError{Op: "chmod", Path: "/run/lace", Err: unix.EPERM}
	denied := fmt.Errorf("lock: %w", unix.EACCES)
	needed := []Capability{NetAdmin, BPF}
	cases := []struct {
		sentence string
		err      error
		user     int
		held     uint64
		want     string
	}{
		{"an ordinary user is told everything that is missing", refused, 65534, 0,
			"chmod /run/lace: operation not permitted; this process is user 65534 and lacks CAP_NET_ADMIN (devices, routes and programs on them), CAP_BPF (BPF programs and maps): run it as root, or give it these capabilities"},
		{"what it has is not asked for", denied, 65534, 1 << unix.CAP_NET_ADMIN,
			"lock: permission denied; this process is user 65534 and lacks CAP_BPF (BPF programs and maps): run it as root, or give it these capabilities"},
		{"a root without capabilities, as in a container", denied, 0, 1 << unix.CAP_BPF,
			"lock: permission denied; this process is user 0 and lacks CAP_NET_ADMIN (devices, routes and programs on them): run it as root, or give it these capabilities"},
		{"a user with the capabilities, to whom the directory does not belong", refused, 7, 1<<unix.CAP_BPF | 1<<unix.CAP_NET_ADMIN,
			"chmod /run/lace: operation not permitted; this process is user 7: run it as root, or give that user the path"},
		{"a process that lacks nothing gets the kernel's words", denied, 0, 1<<unix.CAP_BPF | 1<<unix.CAP_NET_ADMIN, "lock: permission denied"},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			got := explain(c.err, c.user, c.held, needed)
			if got.Error() != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !errors.Is(got, fs.ErrPermission) {
				t.Error("the refusal itself is lost")
			}
		})
	}
}

// TestOtherErrorsStayAsTheyAre: nothing is said of rights where none was missing.
func TestOtherErrorsStayAsTheyAre(t *testing.T) {
	for _, err := range []error{nil, errors.New("no such device"), fs.ErrNotExist} {
		if got := Explain(err, NetAdmin); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
