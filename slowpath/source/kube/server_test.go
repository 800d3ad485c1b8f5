package kube

import (
	"strings"
	"testing"
)

// TestARefusedAddressDoesNotRepeatItsPassword, whatever it is refused for: flags and their
// errors end up in logs.
func TestARefusedAddressDoesNotRepeatItsPassword(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"credentials in a URL", "https://admin:secret@192.0.2.1", `"https://xxxxx@192.0.2.1" has more`},
		{"another scheme", "http://admin:secret@192.0.2.1:6443", `"http://xxxxx@192.0.2.1:6443": an API server`},
		{"no scheme", "admin:secret@192.0.2.1", `"xxxxx@192.0.2.1" has more`},
		{"a text that is no URL", "https://admin:secret@[::1", `"https://xxxxx@[::1" is no address`},
		{"a password with a percent sign that is no escape", "https://admin:secret%zz@h", `"https://xxxxx@h" is no address`},
		{"a password with an at sign", "https://admin:secret@secret@h", `"https://xxxxx@h"`},
		{"a port out of range", "https://admin:secret@h:99999", `"https://xxxxx@h:99999"`},
		{"a token in the query", "https://h?token=secret", `"https://h?…" has more`},
		{"a scheme that is part of the password", "secret:sec://x@h", `"xxxxx@h"`},
	} {
		_, err := Servers([]string{c.text}, nil)
		switch {
		case err == nil:
			t.Errorf("%s: %s is taken", c.name, c.text)
		case strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v, want something with %s", c.name, err, c.says)
		}
	}
}
