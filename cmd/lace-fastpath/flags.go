package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"lace-cni.io/lace/cmd/daemonlog"
	"lace-cni.io/lace/cmd/usage"
	"lace-cni.io/lace/fastpath/dataplane"
)

// options are the flags as given.
type options struct {
	stateDir  string
	bpffs     string
	workers   int
	flowSlots int
	trunkMTU  int
	puntRate  int
	puntBurst int
	cleanup   bool
	log       daemonlog.Options
	version   bool
}

// flags declares every flag.
func flags(o *options) *flag.FlagSet {
	f := flag.NewFlagSet("lace-fastpath", flag.ContinueOnError)
	f.StringVar(&o.stateDir, "state-dir", dataplane.DefaultStateDir, "`directory` shared with lace-agent")
	f.StringVar(&o.bpffs, "bpffs", dataplane.DefaultBPFFS, "`directory` of a mounted BPF file system to pin in")
	f.IntVar(&o.workers, "workers", dataplane.DefaultWorkers, "`number` of queues of the trunk, each with a goroutine that serves it")
	f.IntVar(&o.flowSlots, "flow-slots", dataplane.DefaultFlowSlots, "`number` of slots of the flow table, two for a flow, 130 bytes each; rounded up")
	f.IntVar(&o.trunkMTU, "trunk-mtu", dataplane.DefaultTrunkMTU, "largest packet that the trunk carries, in `bytes`")
	f.IntVar(&o.puntRate, "punt-rate", dataplane.DefaultPuntRate, "`packets` a second that every port may always have decided in Go; more while there is room")
	f.IntVar(&o.puntBurst, "punt-burst", dataplane.DefaultPuntBurst, "`packets` of one port that may come at once, beyond its --punt-rate")
	f.BoolVar(&o.cleanup, "cleanup", false, "remove what lace-fastpath has left on this node, flows included, and end")
	o.log.Flags(f)
	f.BoolVar(&o.version, "version", false, "print the version, and end")
	return f
}

// parse reads a command line and checks what does not depend on the node.
func parse(args []string, errs io.Writer) (*options, error) {
	o := new(options)
	f := flags(o)
	if err := usage.Parse(f, args); err != nil {
		return nil, err
	}
	if rest := f.Args(); len(rest) > 0 {
		return nil, fmt.Errorf("%q is no flag: flags are all there is", rest[0])
	}
	if err := o.log.Judge(); err != nil {
		return nil, err
	}
	if err := o.given(); err != nil {
		return nil, err
	}
	c := o.config(errs)
	return o, c.Check()
}

// given refuses what the configuration would take for a wish for the default.
func (o *options) given() error {
	for _, f := range []struct {
		says  string
		empty bool
	}{
		{"--state-dir is empty: name a directory", o.stateDir == ""},
		{"--bpffs is empty: name a directory", o.bpffs == ""},
		{"--workers is 0: at least one is needed", o.workers == 0},
		{"--flow-slots is 0: leave the flag out for the default", o.flowSlots == 0},
		{"--trunk-mtu is 0: leave the flag out for the default", o.trunkMTU == 0},
		{"--punt-rate is 0: leave the flag out for the default", o.puntRate == 0},
		{"--punt-burst is 0: leave the flag out for the default", o.puntBurst == 0},
	} {
		if f.empty {
			return errors.New(f.says)
		}
	}
	return nil
}

// config is what the flags ask for.
func (o *options) config(errs io.Writer) dataplane.Config {
	return dataplane.Config{
		StateDir: o.stateDir, BPFFS: o.bpffs,
		Workers: o.workers, FlowSlots: o.flowSlots, TrunkMTU: o.trunkMTU,
		PuntRate: o.puntRate, PuntBurst: o.puntBurst,
		Log: o.log.Log(errs),
	}
}
