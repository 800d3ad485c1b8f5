package agent

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"lace-cni.io/lace/slowpath/kubeproxy"
	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

func TestStartBesideAKubeProxy(t *testing.T) {
	runs := kubeproxy.Signs{Running: []string{"process 7"}, Rules: []string{"nftables table kube-proxy"}}
	left := kubeproxy.Signs{Rules: []string{"nftables table kube-proxy"}}
	for _, c := range []struct {
		name   string
		signs  kubeproxy.Signs
		beside bool
		says   []string // in the error; none: it starts
		logs   string
	}{
		{"without a sign of one it starts", kubeproxy.Signs{}, false, nil, ""},
		{"beside a running one it does not, and says how to go on", runs, false, []string{"process 7", "nftables table kube-proxy", "End it", "--beside-kube-proxy", "kube-proxy --cleanup", "docs/how-to/replace-kube-proxy.md"}, ""},
		{"beside rules that were left it does not, and says how to remove them", left, false, []string{"nftables table kube-proxy", "kube-proxy --cleanup", "--beside-kube-proxy", "docs/how-to/replace-kube-proxy.md"}, ""},
		{"asked to, it starts beside a running one, and logs it", runs, true, nil, "process 7"},
		{"asked to, it starts beside rules that were left", left, true, nil, "nftables table kube-proxy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log journal
			config := config(t, &log)
			config.BesideProxy = c.beside
			err := config.refuseBesideProxy(c.signs)
			if (err != nil) != (len(c.says) > 0) || err != nil && !errors.Is(err, ErrKubeProxy) {
				t.Fatalf("got %v", err)
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the error does not say %q: %v", word, err)
				}
			}
			if !strings.Contains(log.String(), c.logs) || c.logs == "" && log.String() != "" {
				t.Errorf("log %q, want %q", log.String(), c.logs)
			}
		})
	}
}

// TestRefusedStartChangesNothing: the whole start, beside a table of kube-proxy's.
func TestRefusedStartChangesNothing(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip(err)
	}
	space := netdevtest.New(t)
	var log journal
	c := config(t, &log)
	var err error
	space.Do(func() {
		if out, e := exec.Command("nft", "add", "table", "ip", "kube-proxy").CombinedOutput(); e != nil {
			t.Errorf("nft: %v: %s", e, out)
		}
		err = Run(t.Context(), c)
	})
	if !errors.Is(err, ErrKubeProxy) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if _, err := os.Stat(c.StateDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state directory: %v, want none", err)
	}
}
