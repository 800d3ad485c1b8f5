package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "lace-cni.io/lace/"

// layers is the import table of the house: which parts of the project a package may
// import, and why. A package is held by the longest prefix that names it. What is not
// listed is forbidden, so that a new edge is a decision and not an accident.
var layers = []struct {
	pkg   string
	mayBe []string
	why   string
}{
	{"fastpath/reason", nil, "the vocabulary stands alone"},
	{"fastpath/packet", []string{"fastpath/checksum"}, "parsing knows bytes only; answers carry checksums"},
	{"fastpath/checksum", nil, "arithmetic stands alone"},
	{"fastpath/table", []string{"fastpath/packet"}, "records are keyed by packet addresses; Kubernetes is unknown here"},
	{"fastpath/conntrack", []string{"fastpath/packet", "fastpath/checksum"}, "flows are keyed by what packets carry"},
	{"fastpath/nat", []string{"fastpath/packet", "fastpath/checksum", "fastpath/conntrack", "fastpath/table"}, "a rewrite is computed from a flow and a backend"},
	{"fastpath/blackhole", []string{"fastpath/packet", "fastpath/conntrack"}, "a black hole is named by the tuple of its flow"},
	{"fastpath/counter", []string{"fastpath/reason", "fastpath/blackhole", "fastpath/conntrack", "fastpath/packet"}, "counters are indexed by reason; black holes are in the file, too"},
	{"fastpath/affinity", []string{"fastpath/packet"}, "clients are remembered by what packets carry"},
	{"fastpath/lane", []string{"fastpath/packet", "fastpath/conntrack"}, "handing over is a matter of flows alone"},
	{"fastpath/police", nil, "how much a port may ask is a matter of rings and time alone"},
	{"fastpath/fragment", []string{"fastpath/packet", "fastpath/conntrack", "fastpath/reason"}, "a fragment follows the flow of the first one, or is dropped with a reason"},
	{"fastpath/pipeline", []string{"fastpath/affinity", "fastpath/blackhole", "fastpath/packet", "fastpath/checksum", "fastpath/conntrack", "fastpath/fragment", "fastpath/lane", "fastpath/nat", "fastpath/table", "fastpath/reason"}, "the verdict is a function of packet, tables and flows"},
	{"fastpath/pipeline/matrix", []string{"fastpath/packet", "fastpath/reason", "fastpath/table"}, "cases are data for the tests of the pipeline and of the process"},
	{"fastpath/port", []string{"xdp/xsk"}, "a port carries frames and does not look into them"},
	{"fastpath/worker", []string{"fastpath/packet", "fastpath/conntrack", "fastpath/pipeline", "fastpath/port", "fastpath/counter", "fastpath/blackhole", "fastpath/police", "fastpath/reason", "fastpath/table"}, "the loop joins port and pipeline"},
	{"fastpath/right", nil, "a process's rights stand alone"},
	{"fastpath/statedir", nil, "a directory stands alone"},
	{"fastpath/dataplane", []string{"fastpath", "xdp"}, "the process owns XDP, AF_XDP and the flow table, and nothing of Kubernetes"},
	{"xdp/xsk", nil, "the rings know x/sys/unix and nothing of Lace"},
	{"xdp", []string{"fastpath/reason", "fastpath/packet", "fastpath/table", "fastpath/conntrack", "fastpath/affinity", "fastpath/police", "xdp"}, "maps hold table records and are counted by reason"},
	{"control/model", nil, "the vocabulary of the control plane stands alone"},
	{"control/eligible", []string{"control/model"}, "eligibility is a pure function of the model"},
	{"control/resolve", []string{"control/model", "control/eligible"}, "Kubernetes objects become the model"},
	{"control/compile", []string{"control/model", "control/eligible", "fastpath/table", "fastpath/packet"}, "the model becomes a snapshot: the one value that crosses down"},
	{"slowpath/source", []string{"control/model", "control/resolve", "slowpath/regular", "slowpath/source"}, "a source delivers objects"},
	{"slowpath/source/kube/kubetest", nil, "API servers for tests know nothing of what reads them"},
	{"slowpath/publish", []string{"control", "slowpath/source", "fastpath/table"}, "objects in, snapshot out"},
	{"slowpath/manifests", []string{"control/model", "control/resolve", "slowpath/publish", "slowpath/source"}, "a folder is read and judged as an agent would"},
	{"slowpath/regular", nil, "what may be read of a file is a matter of the file"},
	{"slowpath/netdev", nil, "the kernel's links behind one interface"},
	{"slowpath/netdev/netdevtest", []string{"slowpath/netdev", "bench/lab/testenv"}, "namespaces for tests, which are skipped where there can be none"},
	{"slowpath/attach", []string{"control/model", "slowpath/netdev", "fastpath/right", "fastpath/table"}, "ports are derived from links; ids are seeded from the last snapshot"},
	{"slowpath/kubeproxy", []string{"slowpath/netdev/netdevtest"}, "signs of another program stand alone"},
	{"slowpath/hostport", []string{"control/model"}, "sockets of the node, named in the model's words"},
	{"slowpath/metrics", []string{"slowpath", "control/model", "control/resolve", "fastpath/counter", "fastpath/blackhole", "fastpath/police", "fastpath/reason", "fastpath/conntrack", "fastpath/table", "xdp"}, "collectors read the counters that the fast path writes"},
	{"slowpath/listener", nil, "a bound for connections stands alone"},
	{"slowpath/health", []string{"slowpath/listener"}, "health is a rule about times that its caller knows"},
	{"slowpath/servicehealth", []string{"control/model", "slowpath/listener"}, "an answer is a function of Services and of the generation in use"},
	{"slowpath/adminserver", []string{"slowpath", "control", "fastpath/counter", "fastpath/blackhole", "fastpath/reason", "fastpath/conntrack", "fastpath/nat", "fastpath/packet", "fastpath/pipeline", "fastpath/table", "xdp"}, "explain runs the production pipeline; get reads its tables"},
	{"slowpath/agent", []string{"slowpath", "control", "fastpath/counter", "fastpath/blackhole", "fastpath/reason", "fastpath/conntrack", "fastpath/right", "fastpath/statedir", "fastpath/table", "fastpath/pipeline", "xdp"}, "wires the slow path"},
	{"cmd/usage", nil, "help is a matter of flags alone"},
	{"cmd/daemonlog", nil, "how lines are written is a matter of flags alone"},
	{"cmd/lace-fastpath", []string{"cmd/daemonlog", "cmd/usage", "fastpath/dataplane", "xdp"}, "no credentials, no Kubernetes"},
	{"cmd/lace-agent", []string{"cmd/daemonlog", "cmd/usage", "slowpath", "control", "fastpath/table", "xdp"}, "wires, nothing else"},
	{"cmd/lace", []string{"cmd/lace", "slowpath", "control", "fastpath", "xdp", "bench/lab"}, "the demo runs both processes; the rest talks to the agent's socket"},
	{"docs/commandline", nil, "pages are text; whose flags they name, each command tests itself"},
	{"bench/oracle", nil, "what judges Lace shares no code with it"},
	{"bench", []string{"bench", "cmd", "slowpath", "control", "fastpath", "xdp"}, "labs and measurements may use the whole product; the product uses none of them but the demo's lab"},
}

// foreign lists modules that a part of the project must not link, with the reason.
var foreign = []struct{ pkg, dep, why string }{
	{"cmd/lace", "k8s.io/client-go", "the first run of the demo would wait minutes for it to compile"},
	{"slowpath/agent", "k8s.io/client-go", "the demo's agent reads a folder; a source is given to the agent from outside"},
	{"cmd/lace-fastpath", "k8s.io/", "a hostile packet never meets an API credential, and the heap stays small"},
	{"cmd/lace-fastpath", "github.com/prometheus/", "metrics are the agent's"},
	{"control/eligible", "k8s.io/", "eligibility speaks the model's words"},
	{"control/compile", "k8s.io/", "the snapshot knows nothing of Kubernetes"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []pkg
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	if len(ps) < 20 {
		t.Fatalf("go list found %d packages only", len(ps))
	}
	return ps
}

func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func TestImportTable(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if name == "docs" {
			continue
		}
		rule := -1
		for i, l := range layers {
			if within(name, l.pkg) && (rule < 0 || len(l.pkg) > len(layers[rule].pkg)) {
				rule = i
			}
		}
		if rule < 0 {
			t.Errorf("%s is not in the import table: add a line that says what it may import and why", name)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours || within(to, layers[rule].pkg) {
				continue
			}
			allowed := false
			for _, m := range layers[rule].mayBe {
				allowed = allowed || within(to, m)
			}
			if !allowed {
				t.Errorf("%s imports %s, which its line forbids (%s)", name, to, layers[rule].why)
			}
		}
	}
}

func TestForeignModules(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, f := range foreign {
			if name != f.pkg {
				continue
			}
			for _, d := range p.Deps {
				if strings.HasPrefix(d, f.dep) {
					t.Errorf("%s links %s: %s", name, d, f.why)
				}
			}
		}
	}
}
