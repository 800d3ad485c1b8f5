package preflight

// Places are the paths of the node's Lace.
type Places struct {
	StateDir string
	BPFFS    string
}

// Facts are what Look saw. A zero field that means "could not be seen" says so.
type Facts struct {
	Places        Places
	Kernel        string            // release, as uname gives it
	MissingCaps   []string          // capabilities that this process lacks, each with what it is for
	Features      []Feature         // what the BPF programs and rings need
	BPFFSMounted  bool              // a BPF file system is at Places.BPFFS
	BPFFSAbsent   bool              // not even a directory is there
	MemlockBytes  uint64            // limit of locked memory; ^0 for none
	Forwarding    map[string]string // sysctl name → value
	Devices       []Device
	Fastpath      *Fastpath // of a running or earlier fast path; nil: none
	FastpathAlive bool      // its lock is held
	FastpathApart int       // the process that holds it, by the number it has here, when it is in another network namespace; 0: it is in this one, or that is not known
	Pins          []string  // pinned objects under Places.BPFFS
	Agent         Agent
	KubeProxy     []string // signs that kube-proxy programs this node
	NoCgroupRoot  string   // why the root of the cgroup2 hierarchy is out of reach from here; empty: it is in reach
}

// Feature is one ability of the kernel. Error is empty when it is there.
type Feature struct {
	Name    string
	Error   string
	Unknown bool // it cannot be probed without more privileges
}

// Device is one network device.
type Device struct {
	Name     string
	Kind     string // veth, bridge, ...; empty for hardware
	Driver   string
	Up       bool
	MTU      int
	RxQueues int
	XDP      *XDPFeatures    // nil: the kernel does not tell
	Offloads map[string]bool // active features by the kernel's names; nil: the kernel does not tell
}

// XDPFeatures is what a driver says it can do.
type XDPFeatures struct{ Native, Redirect, ZeroCopy bool }

// Fastpath is what a fast path wrote about itself when it started.
type Fastpath struct {
	PID        int    `json:"pid"`
	XDPMode    string `json:"xdpMode"`
	SocketMode string `json:"socketMode"`
	Workers    int    `json:"workers"`
	Queues     int    `json:"queues"`
	TrunkMTU   int    `json:"trunkMTU"`
}

// TrunkDevice is the node's side of the trunk.
const TrunkDevice = "lace0"

func (f *Facts) device(name string) *Device {
	for i := range f.Devices {
		if f.Devices[i].Name == name {
			return &f.Devices[i]
		}
	}
	return nil
}
