package kube

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubeconfigFiles: whatever a kubeconfig is or names, reading it comes to an end.
func TestKubeconfigFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	with := func(user string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
			"contexts: [{name: c, context: {cluster: k, user: u}}]\n" +
			"clusters: [{name: k, cluster: {server: 'https://192.0.2.1:6443'}}]\n" +
			"users: [{name: u, user: {" + user + "}}]\n"
	}
	write("token", "secret")
	for _, c := range []struct{ does, path, says string }{
		{"a file beside it is found", write("good", with("tokenFile: token")), ""},
		{"a device has no end", "/dev/zero", "no regular file"},
		{"what the kernel makes up may wait for ever", "/proc/self/status", "a file of the kernel's"},
		{"a token that the kernel makes up", write("kernel", with("tokenFile: /proc/self/status")), "names /proc/self/status: it is a file of the kernel's"},
		{"more than any kubeconfig has", write("long", string(bytes.Repeat([]byte("#"), maxFile+1))), "more than 1048576 bytes"},
		{"a token in a device", write("device", with("tokenFile: /dev/zero")), "names /dev/zero: it is no regular file"},
		{"a token that is absent", write("absent", with("tokenFile: nowhere")), filepath.Join(dir, "nowhere")},
		{"no YAML", write("odd", "\t{"), "odd"},
		{"a server that is none", write("server", strings.ReplaceAll(with("token: x"), "https:", "ftp:")), `"ftp://192.0.2.1:6443"`},
	} {
		t.Run(c.does, func(t *testing.T) {
			_, servers, err := access(&Config{Kubeconfig: c.path})
			if c.says == "" {
				if err != nil || len(servers) != 1 || servers[0].Host != "192.0.2.1:6443" {
					t.Errorf("servers %v, %v", servers, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "--kubeconfig "+c.path) {
				t.Errorf("said %v, want the flag, the file, and %q", err, c.says)
			}
		})
	}
}
