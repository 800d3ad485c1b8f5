package kubeproxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

// TestRulesAreSeenInTheirNamespace lays what kube-proxy lays, by the programs that it uses.
func TestRulesAreSeenInTheirNamespace(t *testing.T) {
	for _, c := range []struct {
		name  string
		lay   string // commands; empty: nothing
		signs []string
	}{
		{"nothing", "", nil},
		{"rules of others, with names that begin as kube-proxy's", "nft add table ip kube-proxy-2; nft add table ip kube-router; iptables-nft -t nat -N KUBE-SERVICES-2; iptables-legacy -t nat -N KUBE-SERVICES2; iptables-legacy -t nat -N MY-KUBE-SVC", nil},
		{"what a kubelet lays", "iptables-nft -t mangle -N KUBE-KUBELET-CANARY; iptables-nft -t filter -N KUBE-FIREWALL", nil},
		{"mode nftables, both families", "nft add table ip kube-proxy; nft add table ip6 kube-proxy", []string{"nftables table kube-proxy"}},
		{"mode nftables, IPv6 alone", "nft add table ip6 kube-proxy", []string{"nftables table kube-proxy"}},
		{"mode iptables over nftables", "iptables-nft -t nat -N KUBE-SERVICES; ip6tables-nft -t nat -N KUBE-SERVICES", []string{"nftables chain KUBE-SERVICES"}},
		{"mode iptables", "iptables-legacy -t nat -N KUBE-SERVICES", []string{"chain KUBE-SERVICES of iptables"}},
		{"mode iptables, IPv6 alone, among other chains", "ip6tables-legacy -t nat -N A; ip6tables-legacy -t nat -N KUBE-SERVICES; ip6tables-legacy -t nat -A PREROUTING -j KUBE-SERVICES; ip6tables-legacy -t nat -N Z", []string{"chain KUBE-SERVICES of ip6tables"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			space := netdevtest.New(t)
			space.Do(func() {
				for command := range strings.SplitSeq(c.lay, ";") {
					if words := strings.Fields(command); len(words) > 0 {
						program, err := exec.LookPath(words[0])
						if err != nil {
							t.Skipf("%s is not installed", words[0])
						}
						if out, err := exec.Command(program, words[1:]...).CombinedOutput(); err != nil {
							t.Skipf("%s: %v: %s", command, err, out)
						}
					}
				}
				if diff := cmp.Diff(c.signs, Look().Words()); diff != "" {
					t.Errorf("signs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestDeviceOfModeIPVSIsASign(t *testing.T) {
	space := netdevtest.New(t)
	space.Do(func() {
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: ipvsDevice}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"device kube-ipvs0"}, Look().Rules); diff != "" {
			t.Errorf("signs (-want +got):\n%s", diff)
		}
	})
}

func TestProcesses(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, name, space string) {
		dir := filepath.Join(proc, pid)
		if err := os.MkdirAll(filepath.Join(dir, "ns"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "comm"), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if space == "" {
			return
		}
		if err := os.Symlink(space, filepath.Join(dir, "ns/net")); err != nil {
			t.Fatal(err)
		}
	}
	process("thread-self", "lace-agent", "net:[1]")
	process("10", "kube-proxy", "net:[1]")
	process("11", "kube-proxy", "net:[2]")  // another node's, in a lab
	process("12", "kube-proxy2", "net:[1]") // another program
	process("13", "kube-proxy", "")         // may not be looked at
	if diff := cmp.Diff([]string{"process 10", "process 13"}, processes(proc)); diff != "" {
		t.Errorf("signs (-want +got):\n%s", diff)
	}
	if got := processes(filepath.Join(proc, "absent")); got != nil {
		t.Errorf("without a /proc: %q", got)
	}
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		code             int
		sign             bool
	}{
		{"kube-proxy in mode nftables", "/proxyMode", "nftables", http.StatusOK, true},
		{"kube-proxy in mode ipvs", "/proxyMode", "ipvs", http.StatusOK, true},
		{"Lace itself", "/proxyMode", "lace", http.StatusOK, false},
		{"something that knows no modes", "/metrics", "iptables", http.StatusOK, false},
		{"an error that says a mode", "/proxyMode", "iptables", http.StatusInternalServerError, false},
		{"an answer without end", "/proxyMode", strings.Repeat("iptables", 1<<16), http.StatusOK, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc(c.path, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			address := server.Listener.Addr().String()
			var want []string
			if c.sign {
				want = []string{fmt.Sprintf("mode %s, told at %s/proxyMode", c.body, address)}
			}
			if diff := cmp.Diff(want, answer(address)); diff != "" {
				t.Errorf("signs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnswersOfStrangers: whoever listens there costs a moment and no more.
func TestAnswersOfStrangers(t *testing.T) {
	for name, says := range map[string]string{"nothing": "", "no HTTP": "SSH-2.0-x\r\n", "half an answer": "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nipt"} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				conn, err := l.Accept()
				if err == nil {
					_, _ = io.WriteString(conn, says)
					_, _ = io.Copy(io.Discard, conn) // until the caller goes
					conn.Close()
				}
			}()
			if got := answer(l.Addr().String()); got != nil {
				t.Errorf("signs %q, want none", got)
			}
		})
	}
}
