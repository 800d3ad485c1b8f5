package agent

import (
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/source"
)

// Defaults of Config, which are those of lace-agent's flags.
const (
	DefaultStateDir    = "/run/lace"
	DefaultBPFFS       = "/sys/fs/bpf"
	DefaultHealthAddr  = "0.0.0.0:10256"
	DefaultMetricsAddr = "127.0.0.1:10249"
)

// Config of the agent of one node.
type Config struct {
	StateDir     string            // files shared with the fast path; made with mode 0700; empty: DefaultStateDir
	BPFFS        string            // the BPF file system that the fast path pins in; empty: DefaultBPFFS
	NodeName     string            // name of this node, as in its Node object
	Source       source.Source     // where objects come from
	SourceName   string            // what to call it, such as dir:/etc/lace
	SourcePart   bool              // the source may leave out Services that are not proxied
	ServiceCIDRs []netip.Prefix    // service ranges, routed to lace0; empty: as ServiceCIDRs declare them
	APIServers   []netip.AddrPort  // what the API servers listen on: no Service gets it
	Tell         Tell              // is told of Problems, to tell others; nil: the log is of those of Services too
	NodePorts    resolve.NodePorts // at which of its addresses the node answers node ports; zero: the primary ones
	HealthAddr   string            // of /healthz and /livez; empty: not served
	MetricsAddr  string            // of /metrics, /proxyMode and /configz; empty: not served
	Profiling    bool              // /debug/pprof, too, to clients of this machine
	Delivery     model.Delivery    // of pods' and uplinks' ports; zero: model.Direct
	BesideProxy  bool              // start although there are signs of a kube-proxy
	Version      string
	Settings     table.Settings // published for the fast path; zero: table.DefaultSettings
	Stack        netdev.Stack   // the node's network; nil: that of the calling thread's namespace
	Log          *slog.Logger   // nil: slog.Default
}

// Tell hears of all Problems that there are whenever they have changed, and, in the form of
// Problems, of Services that have lost their last endpoint. It must not keep its caller
// waiting.
type Tell func([]model.Problem)

// complete sets defaults and refuses what cannot work.
func (c *Config) complete() error {
	if c.StateDir == "" {
		c.StateDir = DefaultStateDir
	}
	if c.BPFFS == "" {
		c.BPFFS = DefaultBPFFS
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Tell == nil {
		c.Tell = tellLog(c.Log, true, c.place)
	} else {
		c.Tell = both(c.Tell, tellLog(c.Log, false, c.place))
	}
	if c.NodeName == "" {
		return errors.New("the node has no name: say which Node object is this one (--node-name)")
	}
	if c.Source == nil {
		return errors.New("there is no source of objects: name a folder of YAML (--source-dir)")
	}
	return resolve.JudgeRanges(c.ServiceCIDRs)
}

func (c *Config) path(name string) string { return filepath.Join(c.StateDir, name) }
