package agent

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/kubeproxy"
	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

// TestKubeProxyThatComesLater: one that is started on a node where Lace serves is a Problem of
// the node as long as there is a sign of it, and is logged when it comes and when it goes.
func TestKubeProxyThatComesLater(t *testing.T) {
	var log journal
	c := config(t, &log)
	w := newProxyWatch(&c)
	runs := kubeproxy.Signs{Running: []string{"process 7"}, Rules: []string{"nftables table kube-proxy"}}
	again := kubeproxy.Signs{Running: []string{"process 8"}, Rules: []string{"nftables table kube-proxy"}}
	for _, step := range []struct {
		name  string
		signs kubeproxy.Signs
		says  []string // in the Problem; none: there is none
		lines int      // in the log so far
	}{
		{"nothing is there", kubeproxy.Signs{}, nil, 0},
		{"it is started", runs, []string{"process 7", "nftables table kube-proxy", "--beside-kube-proxy", "kube-proxy --cleanup"}, 1},
		{"it is restarted, which is not logged again", again, []string{"process 8"}, 1},
		{"it ends and leaves its rules", kubeproxy.Signs{Rules: again.Rules}, []string{"nftables table kube-proxy", "kube-proxy --cleanup"}, 1},
		{"its rules are removed", kubeproxy.Signs{}, nil, 2},
		{"it comes back", runs, []string{"process 7"}, 3},
	} {
		w.note(step.signs)
		got := w.found()
		if len(got) > 1 || (len(got) == 1) != (len(step.says) > 0) {
			t.Fatalf("%s: Problems %v", step.name, got)
		}
		for _, word := range step.says {
			if p := got[0]; p.Kind != "Node" || p.Object != "n1" || p.Reason != "KubeProxyBeside" || !strings.Contains(p.Message, word) {
				t.Errorf("%s: Problem %+v, want one of the node that says %q", step.name, p, word)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != step.lines {
			t.Errorf("%s: %d lines are logged, want %d: %s", step.name, n, step.lines, log.String())
		}
	}
}

// TestBesideAKubeProxyAsAskedTo: then one is expected, and no Problem.
func TestBesideAKubeProxyAsAskedTo(t *testing.T) {
	c := config(t, io.Discard)
	c.BesideProxy = true
	w := newProxyWatch(&c)
	if err := w.run(t.Context()); err != nil || w.found() != nil {
		t.Errorf("%v, Problems %v", err, w.found())
	}
}

// TestRulesThatComeToANode: a real table, which is seen while the node is served.
func TestRulesThatComeToANode(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip(err)
	}
	space := netdevtest.New(t)
	nft := func(args ...string) {
		space.Do(func() {
			if out, err := exec.Command("nft", args...).CombinedOutput(); err != nil {
				t.Errorf("nft %q: %v: %s", args, err, out)
			}
		})
	}
	s := newScene(t)
	s.proxies = newProxyWatch(s.config)
	s.proxies.every = time.Millisecond
	s.proxies.look = func() (signs kubeproxy.Signs) {
		space.Do(func() { signs = signsOfProxy() })
		return signs
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.proxies.run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	blamed := func(want bool) func() error {
		return func() error {
			got := slices.ContainsFunc(s.problems(fastpath{}), func(p model.Problem) bool {
				return p.Reason == "KubeProxyBeside" && strings.Contains(p.Message, "nftables table kube-proxy")
			})
			if got != want {
				return fmt.Errorf("told of: %v", got)
			}
			return nil
		}
	}
	nft("add", "table", "ip", "kube-proxy")
	eventually(t, "the table is told of", blamed(true))
	nft("delete", "table", "ip", "kube-proxy")
	eventually(t, "that it is gone is seen", blamed(false))
}
