package main

import (
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/cmd/usage"
)

// Parts of a run.
const (
	partIdle   = "idle"
	partLoaded = "loaded"
	partCold   = "cold"
	partRest   = "rest"
)

var allParts = []string{partIdle, partLoaded, partCold, partRest}

// options are the flags as given.
type options struct {
	agent, fastpath string
	services        int
	endpoints       int
	most            int
	changes         int
	starts          int
	pause           time.Duration
	rest            time.Duration
	limit           time.Duration
	proxyPeriod     time.Duration
	parts           []string
	json            string
}

// flags declares every flag.
func flags(o *options) *flag.FlagSet {
	f := flag.NewFlagSet("lace-latency", flag.ContinueOnError)
	f.StringVar(&o.agent, "agent", "bin/lace-agent", "the `command` lace-agent to measure")
	f.StringVar(&o.fastpath, "fastpath", "bin/lace-fastpath", "the `command` lace-fastpath to measure")
	f.IntVar(&o.services, "services", 5000, "`number` of Services")
	f.IntVar(&o.endpoints, "endpoints", 10, "`number` of endpoints of each while endpoints change")
	f.IntVar(&o.most, "most", 50, "`number` of endpoints of each for cold starts, memory and rest")
	f.IntVar(&o.changes, "changes", 40, "`number` of changes for each side, idle and again under load")
	f.IntVar(&o.starts, "starts", 2, "`number` of cold starts for each side")
	f.DurationVar(&o.pause, "pause", 1500*time.Millisecond, "`time` before each change in which nothing happens; kube-proxy waits for a second after each of its own")
	f.DurationVar(&o.rest, "rest", time.Minute, "`time` of rest in which writes to the API are counted")
	f.DurationVar(&o.limit, "limit", 2*time.Minute, "`time` within which a change or a start must have ended")
	f.DurationVar(&o.proxyPeriod, "min-sync-period", 0, "kube-proxy's nftables.minSyncPeriod, a `time`; 0: its default, a second")
	f.Func("parts", "only these `parts`, separated by commas: "+strings.Join(allParts, ", "), o.only)
	f.StringVar(&o.json, "json", "", "`file` to record the run in")
	return f
}

func parse(args []string) (*options, error) {
	o := &options{parts: allParts}
	f := flags(o)
	if err := usage.Parse(f, args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag: flags are all there is", f.Arg(0))
	}
	return o, o.check()
}

func (o *options) only(s string) error {
	o.parts = strings.Split(s, ",")
	for _, p := range o.parts {
		if !slices.Contains(allParts, p) {
			return fmt.Errorf("no part %q: there are %s", p, strings.Join(allParts, ", "))
		}
	}
	return nil
}

// mostServices fit the lab's service range beside those that answer, and mostEndpoints one
// EndpointSlice.
const (
	mostServices  = 20_000
	mostEndpoints = 100
)

func (o *options) check() error {
	switch {
	case o.services < 1 || o.services > mostServices:
		return fmt.Errorf("%d services: say 1 to %d", o.services, mostServices)
	case o.endpoints < 1 || o.most < o.endpoints || o.most > mostEndpoints:
		return fmt.Errorf("%d and at most %d endpoints: say 1 to %d, the second no less than the first", o.endpoints, o.most, mostEndpoints)
	case o.changes < 1 || o.starts < 1:
		return errors.New("at least one change and one start are needed")
	case o.pause < 0 || o.rest <= 0 || o.limit <= 0 || o.proxyPeriod < 0:
		return errors.New("times cannot be negative, and rest and limit not zero")
	}
	return nil
}

// possible says, before a control plane is started, what would fail behind it.
func (o *options) possible() error {
	for _, command := range []string{o.agent, o.fastpath} {
		if _, err := exec.LookPath(command); err != nil {
			return fmt.Errorf("%w: run make build, or name another one", err)
		}
	}
	if o.json == "" {
		return nil
	}
	if err := record.Writable(o.json); err != nil {
		return fmt.Errorf("the run could not be recorded: %w", err)
	}
	return nil
}

func (o *options) has(part string) bool { return slices.Contains(o.parts, part) }
