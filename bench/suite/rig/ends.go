package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/load"
	"lace-cni.io/lace/bench/suite/rings"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/table"
)

// Path is where client and backends are.
type Path string

const (
	Node    Path = "node"    // both on one node
	Across  Path = "across"  // the client on one node, the backend on another
	Outside Path = "outside" // a client outside of the cluster, backends on the node where it enters
)

// Paths are all there are.
var Paths = []Path{Node, Across, Outside}

// Backends are the pods at the end of a path.
func (p Path) Backends() []string {
	if p == Across {
		return remotePods
	}
	return localPods
}

// Target is what a client calls: the service, or in the mode without services a pod.
func (r *Rig) Target(p Path) netip.AddrPort {
	switch {
	case r.Mode.Kind == Direct:
		return r.Pod(p)
	case p == Across:
		return netip.AddrPortFrom(remoteVIP, FrontendPort)
	}
	return netip.AddrPortFrom(localVIP, FrontendPort)
}

// Pod is the first backend itself.
func (r *Rig) Pod(p Path) netip.AddrPort {
	return netip.AddrPortFrom(pods[p.Backends()[0]], BackendPort)
}

// Client is the namespace of the client on a path.
func (r *Rig) Client(p Path) *load.Space {
	if p == Outside {
		return r.spaces[lab.OutsideName]
	}
	return r.spaces[clientPod]
}

// Space of a host of the lab.
func (r *Rig) Space(name string) *load.Space { return r.spaces[name] }

// Entrance is where frames of a path are put on their way: a device whose other end is the
// first node's. From outside that is the port of the wire, past the bridge, which is no part
// of what is measured.
func (r *Rig) Entrance(p Path) (space *load.Space, device string, flows load.Flows, err error) {
	owner, at := r.spaces[clientPod], "eth0"
	space, device = owner, at
	next := clientPod
	flows.From = clientSources
	if p == Outside {
		owner, space, device = r.spaces[lab.OutsideName], r.spaces[wireSpace], "n1"
		next, flows.From = "eth0", outsideSources
	}
	if flows.Source, err = owner.MAC(at); err != nil {
		return
	}
	flows.Destination, err = r.spaces["n1"].MAC(next)
	return
}

// Processes that serve packets of the first node in user space.
func (r *Rig) Processes() []int {
	role := map[Kind]string{Lace: "fastpath", Rings: ringsRole}[r.Mode.Kind]
	if role == "" {
		return nil
	}
	return load.Descendants(r.lab.Node("n1").PID(), "LACE_LAB_ROLE="+role)
}

// Punted is the number of packets that user space has received on the first node.
func (r *Rig) Punted() (uint64, bool) {
	if r.Mode.Kind != Lace && r.Mode.Kind != Rings {
		return 0, false
	}
	c, err := counter.Open(r.lab.Node("n1").StatePath(rings.CounterFile))
	if err != nil {
		return 0, false
	}
	defer c.Close()
	return c.Totals().Events[counter.Received], true
}

// Forget removes the flows that a mode of the kernel has; Lace's own end by their timeouts.
func (r *Rig) Forget() error {
	if r.Mode.Kind != Nft && r.Mode.Kind != Iptables {
		return nil
	}
	for _, n := range []string{"n1", "n2"} {
		if err := r.spaces[n].Links().ConntrackTableFlush(netlink.ConntrackTable); err != nil {
			return fmt.Errorf("flush the flows of %s: %w", n, err)
		}
	}
	return nil
}

// frontends of the snapshot.
func (r *Rig) frontends(path string) int {
	s, err := table.Open(path)
	if err != nil {
		return 0
	}
	defer s.Close()
	return len(s.Frontends())
}

// logs are the last lines of what the processes of the first node have said.
func (r *Rig) logs() string {
	var out strings.Builder
	for _, role := range []string{"fastpath", "agent", ringsRole} {
		b, err := os.ReadFile(r.lab.Node("n1").Log(role))
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		fmt.Fprintf(&out, "%s: %s\n", role, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return out.String()
}

// runRings is the life of a process with the other rings.
func runRings(spec []byte) error {
	var c rings.Config
	if err := json.Unmarshal(spec, &c); err != nil {
		return fmt.Errorf("rings: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return rings.Run(ctx, c)
}
