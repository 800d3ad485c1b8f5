package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

func TestMain(m *testing.M) {
	lab.Main()
	os.Exit(m.Run())
}

// BenchmarkEndpointChange changes one endpoint of one of many Services.
func BenchmarkEndpointChange(b *testing.B) {
	testenv.Privileged(b)
	services := 10_000
	if s := os.Getenv("LACE_SCALE_SERVICES"); s != "" {
		n, err := strconv.Atoi(s)
		must(b, err)
		services = n
	}
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	l, err := lab.Start(ctx, lab.Topology{})
	must(b, err)
	defer func() { must(b, l.Close()) }()
	write(b, l.Manifests(), services)

	n := l.Node("n1")
	must(b, n.StartFastpath(ctx))
	begin := time.Now()
	must(b, n.StartAgent(ctx))
	must(b, n.AwaitReady(ctx))
	cold := time.Since(begin)
	status := await(b, ctx, n, 0)
	if status.Objects.Services < services {
		b.Fatalf("%d of %d Services are programmed, %d problems", status.Objects.Services, services, status.Objects.Problems)
	}

	shift := 0
	for b.Loop() {
		shift++
		must(b, manifests.Save(l.Manifests(), "zz-one.yaml", []byte(slice(services, shift)+"---\n"+service(services))))
		status = await(b, ctx, n, status.Generation.Published)
	}
	agent, fastpath := memory(b, n, status.Fastpath.PID)
	b.ReportMetric(cold.Seconds()*1e3, "ms/cold-start")
	b.ReportMetric(agent/(1<<20), "MiB/agent")
	b.ReportMetric(fastpath/(1<<20), "MiB/fastpath")
	b.ReportMetric(float64(services*endpoints), "backends")
}

// await waits until all workers go by tables newer than a generation.
func await(b *testing.B, ctx context.Context, n *lab.Node, after uint64) api.Status {
	b.Helper()
	for {
		s, err := n.Admin().Status(ctx)
		must(b, err)
		if s.Generation.Published > after && s.Generation.InUse == s.Generation.Published {
			return s
		}
		select {
		case <-ctx.Done():
			b.Fatalf("generation %d is in use, %d published, waiting for one after %d: %v", s.Generation.InUse, s.Generation.Published, after, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// memory of the node's two processes; fastpath is the fast path's number inside the node.
func memory(b *testing.B, n *lab.Node, fastpath int) (ofAgent, ofFastpath float64) {
	b.Helper()
	for _, pid := range children(b, n.PID()) {
		if inner(b, pid) == fastpath {
			ofFastpath = resident(b, pid)
		} else {
			ofAgent += resident(b, pid)
		}
	}
	return ofAgent, ofFastpath
}

func children(b *testing.B, pid int) (out []int) {
	b.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	must(b, err)
	for _, list := range lists {
		text, err := os.ReadFile(list)
		must(b, err)
		for _, word := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(word)
			must(b, err)
			out = append(out, child)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// inner is the number that a process has in its own process namespace.
func inner(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(b, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			words := strings.Fields(rest)
			n, err := strconv.Atoi(words[len(words)-1])
			must(b, err)
			return n
		}
	}
	b.Fatalf("no NSpid of process %d", pid)
	return 0
}
