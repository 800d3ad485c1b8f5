package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	node    = "apiVersion: v1\nkind: Node\nmetadata: {name: %}\nstatus: {addresses: [{type: InternalIP, address: 172.30.0.11}]}\n---\n"
	service = "apiVersion: v1\nkind: Service\nmetadata: {name: %}\nspec: {type: NodePort, clusterIP: $, ports: [{port: 80, nodePort: 30080}]}\n---\n"
	cidr    = "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: all}\nspec: {cidrs: [10.96.0.0/16, 172.30.0.0/16]}\n---\n"
)

func named(text, name, address string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "%", name), "$", address)
}

// TestTheNodeThatIsJudgedFor: which it is, and which addresses it has.
func TestTheNodeThatIsJudgedFor(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text, given string
		node              string
		problems          []string // reason, object, and an address that it names
	}{
		{"the first of the folder by name", named(node, "n2", "") + named(node, "n1", ""), "", "n1", nil},
		{"the one that is named", named(node, "n2", "") + named(node, "n1", ""), "n2", "n2", nil},
		{"one that is not in the folder", named(node, "n1", ""), "n3", "n3", []string{"NodeMissing n3"}},
		{"without any, the host", "# nothing\n", "", strings.ToLower(host), []string{"NodeMissing " + strings.ToLower(host)}},
		{"its address is no Service's", cidr + named(node, "n1", "") + named(service, "web", "172.30.0.11"), "", "n1",
			[]string{"AddressOfNode default/web 172.30.0.11 "}},
		{"another node's address may be one here", cidr + named(node, "n1", "") + named(service, "web", "172.30.0.11"), "n2", "n2",
			[]string{"NodeMissing n2"}},
		{"a node port of two Services is one at whatever address", cidr + named(node, "n1", "") + named(service, "a", "10.96.0.1") + named(service, "b", "10.96.0.2"), "", "n1",
			[]string{"AddressTaken default/b node port 30080/TCP belongs to Service default/a, which keeps it; give"}},
		{"and where it has none", cidr + named(service, "a", "10.96.0.1") + named(service, "b", "10.96.0.2"), "n1", "n1",
			[]string{"NodeMissing n1", "AddressTaken default/b node port 30080/TCP belongs to Service default/a, which keeps it; give"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := Judge(t.Context(), folder, Config{Node: c.given})
			if err != nil {
				t.Fatal(err)
			}
			if j.Node != c.node {
				t.Errorf("node %q, want %q", j.Node, c.node)
			}
			var got []string
			for i, p := range j.Problems {
				said := p.Reason + " " + p.Object
				if i < len(c.problems) && strings.HasPrefix(c.problems[i], said+" ") && strings.Contains(p.Message, c.problems[i][len(said)+1:]) {
					said = c.problems[i]
				}
				got = append(got, said)
			}
			if d := cmp.Diff(c.problems, got); d != "" {
				t.Errorf("Problems (-want +got):\n%s\n%v", d, j.Problems)
			}
		})
	}
}
