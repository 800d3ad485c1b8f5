package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/suite/ceiling"
	"lace-cni.io/lace/bench/suite/rings"
	"lace-cni.io/lace/bench/suite/rules"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/dataplane"
)

// tool is the program that a mode needs, and the Debian package that has it.
func (k Kind) tool() (program, pkg string) {
	switch k {
	case Nft:
		return "nft", "nftables"
	case Iptables:
		return "iptables-restore", "iptables"
	}
	return "", ""
}

// check reports what the machine lacks, before anything is built.
func (r *Rig) check() error {
	program, pkg := r.Mode.Kind.tool()
	if program == "" {
		return nil
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%w program %s: apt-get install %s", ErrMissing, program, pkg)
	}
	return nil
}

// patience for a mode to be in force; the kernel takes ten thousand services slowly.
const patience = 5 * time.Minute

// install brings the mode into force.
func (r *Rig) install(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch r.Mode.Kind {
	case Lace:
		return r.startLace(ctx)
	case Nft:
		return r.loadRules(ctx, rules.Nft, "nft", "-f", "/dev/stdin")
	case Iptables:
		return r.loadRules(ctx, rules.Iptables, "iptables-restore")
	case Ceiling:
		return r.openCeiling()
	case Rings:
		return r.startRings(ctx)
	}
	return nil
}

func (r *Rig) startLace(ctx context.Context) error {
	for _, n := range r.lab.Nodes() {
		if err := n.StartFastpath(ctx); err != nil {
			return err
		}
		if err := n.StartAgent(ctx); err != nil {
			return err
		}
	}
	if err := r.lab.AwaitReady(ctx); err != nil {
		return fmt.Errorf("%w; its log ends:\n%s", err, r.logs())
	}
	return nil
}

// loadRules runs a tool in the network namespaces of the nodes: of both while it is quick,
// of the first, where services are resolved, when there are many.
func (r *Rig) loadRules(ctx context.Context, write func(io.Writer, rules.Cluster, []rules.Service) error, tool string, args ...string) error {
	var text bytes.Buffer
	if err := write(&text, cluster, services(r.Services)); err != nil {
		return err
	}
	nodes := []string{"n1", "n2"}
	if r.Services > 1 {
		nodes = nodes[:1]
	}
	for _, n := range nodes {
		err := r.spaces[n].Do(func() error {
			cmd := exec.CommandContext(ctx, tool, args...)
			cmd.Stdin = bytes.NewReader(text.Bytes())
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %.300s", tool, err, out)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Rig) openCeiling() error {
	var list []ceiling.Pod
	names := append([]string{clientPod}, localPods...)
	for _, name := range names {
		mac, err := r.spaces[name].MAC("eth0")
		if err != nil {
			return err
		}
		list = append(list, ceiling.Pod{Device: name, MAC: mac, Addr: pods[name]})
	}
	c, err := ceiling.Open(r.spaces["n1"], list, []ceiling.Service{{Frontend: r.Target(Node), Target: BackendPort, Backends: []int{1, 2}}})
	if err == nil {
		r.closers = append(r.closers, c.Close)
	}
	return err
}

// ringsRole names the process with the other rings.
const ringsRole = "bench-rings"

func init() {
	lab.Program(ringsRole, runRings)
}

// startRings runs the agent, and the other rings in place of the fast path, on the first
// node.
func (r *Rig) startRings(ctx context.Context) error {
	n := r.lab.Node("n1")
	spec := rings.Config{
		StateDir: n.StateDir(), BPFFS: lab.BPFDir(n.StateDir()),
		FlowSlots: r.FlowSlots, TrunkMTU: dataplane.DefaultTrunkMTU,
	}
	if err := n.StartProgram(ctx, ringsRole, spec); err != nil {
		return err
	}
	if err := n.StartAgent(ctx); err != nil {
		return err
	}
	return r.awaitRings(ctx, n.StatePath(rings.CounterFile), n.StatePath("snapshot"))
}

// awaitRings waits until the snapshot that is written is in use, and no newer one comes for
// half a second: nothing else says that the agent has seen all there is.
func (r *Rig) awaitRings(ctx context.Context, counters, snapshot string) error {
	last, since := uint64(0), time.Now()
	for {
		if c, err := counter.Open(counters); err == nil {
			g := c.Totals().Gauges[counter.Generation]
			c.Close()
			if g != last {
				last, since = g, time.Now()
			}
		}
		if last > 0 && time.Since(since) > time.Second && r.frontends(snapshot) >= r.Services {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; its log ends:\n%s", r.Mode.Name, ctx.Err(), r.logs())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
