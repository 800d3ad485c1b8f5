package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"lace-cni.io/lace/cmd/daemonlog"
	"lace-cni.io/lace/cmd/usage"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/agent"
)

// options are the flags as given.
type options struct {
	stateDir    string
	bpffs       string
	nodeName    string
	sourceDir   string
	apiservers  words
	kubeconfig  string
	ranges      ranges
	nodePorts   nodePorts
	lane        string
	delivery    string
	healthAddr  string
	metricsAddr string
	profiling   bool
	beside      bool
	cleanup     bool
	log         daemonlog.Options
	version     bool
}

// flags declares every flag.
func flags(o *options) *flag.FlagSet {
	f := flag.NewFlagSet("lace-agent", flag.ContinueOnError)
	f.StringVar(&o.stateDir, "state-dir", agent.DefaultStateDir, "`directory` shared with lace-fastpath")
	f.StringVar(&o.bpffs, "bpffs", agent.DefaultBPFFS, "`directory` of the BPF file system that lace-fastpath pins in")
	f.StringVar(&o.nodeName, "node-name", "", "`name` of this node's Node object (default: the host name in lower case)")
	f.StringVar(&o.sourceDir, "source-dir", "", "`folder` of YAML that holds Services, EndpointSlices, Nodes and ServiceCIDRs, in place of an API server")
	f.Var(&o.apiservers, "apiserver", "`addresses` of API servers, separated by commas or given several times, tried in turn; they must not depend on Lace")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` with credentials for the API server, and its address unless --apiserver is given (default: the service account of this pod)")
	f.Var(&o.ranges, "service-cidrs", "service ranges, `prefixes` separated by commas; the node's own packets to them go to Lace (default: as ServiceCIDR objects declare them)")
	f.Var(&o.nodePorts, "nodeport-addresses", "where node ports are answered: `addresses` of this node as prefixes separated by commas, all, or primary (the node's internal addresses)")
	f.StringVar(&o.lane, "lane", "on", "the `mode` of established connections: on, the kernel carries them, or off, every packet of theirs goes through Go")
	f.StringVar(&o.delivery, "delivery", "stack", "the `mode` in which packets of Services go on: stack, the node's own stack routes them, with its firewall and other rules, or direct, they go straight to the pod or next hop")
	f.StringVar(&o.healthAddr, "healthz-bind-address", agent.DefaultHealthAddr, "`address` of /healthz and /livez; empty: not served")
	f.StringVar(&o.metricsAddr, "metrics-bind-address", agent.DefaultMetricsAddr, "`address` of /metrics, /metrics/slis, /healthz, /proxyMode and /configz; empty: not served")
	f.BoolVar(&o.profiling, "profiling", false, "serve /debug/pprof beside /metrics, to clients on this machine's loopback addresses only")
	f.BoolVar(&o.beside, "beside-kube-proxy", false, "start although a kube-proxy runs or has left its rules: while it is replaced, or where it carries other Services than Lace")
	f.BoolVar(&o.cleanup, "cleanup", false, "remove everything that Lace has left on this node, and end")
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
	return o, o.check(f.Args())
}

func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is no flag: flags are all there is", rest[0])
	case o.lane != "on" && o.lane != "off":
		return fmt.Errorf("--lane %q: say on or off", o.lane)
	case o.delivery != "stack" && o.delivery != "direct":
		return fmt.Errorf("--delivery %q: say stack or direct", o.delivery)
	case o.sourceDir != "" && o.fromAPI():
		return fmt.Errorf("--source-dir and --apiserver or --kubeconfig exclude each other: say where Services are declared, in a folder or in a cluster")
	case o.sourceDir == "" && !o.fromAPI() && !o.cleanup && !o.version:
		return noSource()
	}
	if err := o.log.Judge(); err != nil {
		return err
	}
	return o.judge()
}

// fromAPI says whether Services are declared in a cluster.
func (o *options) fromAPI() bool { return len(o.apiservers) > 0 || o.kubeconfig != "" }

// noSource says what to give, and in a pod why its environment is not enough.
func noSource() error {
	const say = "say where Services are declared: in a cluster (--apiserver), or in a folder of YAML (--source-dir)"
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		return fmt.Errorf("%s; KUBERNETES_SERVICE_HOST, which is %s here, is not used: it is the ClusterIP that Lace itself has to serve, so that a restarted node would wait for itself. Give the API servers' own addresses", say, host)
	}
	return errors.New(say)
}

// config is what the flags ask for, but for the source.
func (o *options) config(errs io.Writer) agent.Config {
	return agent.Config{
		StateDir: o.stateDir, BPFFS: o.bpffs, NodeName: o.nodeName,
		ServiceCIDRs: o.ranges, NodePorts: o.nodePorts.NodePorts, HealthAddr: o.healthAddr, MetricsAddr: o.metricsAddr, Profiling: o.profiling,
		Settings: o.settings(), Delivery: o.deliveryKind(), BesideProxy: o.beside, Version: version, Log: o.log.Log(errs),
	}
}

// settings are the defaults but for what a flag says.
func (o *options) settings() table.Settings {
	s := table.DefaultSettings()
	s.Lane = 0
	if o.lane == "on" {
		s.Lane = 1
	}
	return s
}

func (o *options) deliveryKind() model.Delivery {
	if o.delivery == "stack" {
		return model.Stack
	}
	return model.Direct
}

// ranges is a list of prefixes in one flag.
type ranges []netip.Prefix

// String implements flag.Value.
func (r *ranges) String() string {
	var out []string
	for _, p := range *r {
		out = append(out, p.String())
	}
	return strings.Join(out, ",")
}

// Set implements flag.Value. A later flag replaces an earlier one.
func (r *ranges) Set(s string) error {
	out, err := resolve.ParseRanges(s)
	if err != nil {
		return err
	}
	*r = out
	return nil
}

// onlyCommas refuses a list that holds nothing, though something was written.
func onlyCommas(s string) error {
	if strings.Contains(s, ",") && strings.Trim(s, ", ") == "" {
		return errors.New("nothing stands between the commas; leave the flag out, or name something")
	}
	return nil
}

// nodePorts is the choice of addresses for node ports in a flag.
type nodePorts struct{ resolve.NodePorts }

// Set implements flag.Value. A later flag replaces an earlier one.
func (n *nodePorts) Set(s string) (err error) {
	if err := onlyCommas(s); err != nil {
		return err
	}
	n.NodePorts, err = resolve.ParseNodePorts(s)
	return err
}

// words is a list in one flag, which may also be given several times.
type words []string

// String implements flag.Value.
func (w *words) String() string { return strings.Join(*w, ",") }

// Set implements flag.Value. A later flag adds to an earlier one.
func (w *words) Set(s string) error {
	if err := onlyCommas(s); err != nil {
		return err
	}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*w = append(*w, part)
		}
	}
	return nil
}
