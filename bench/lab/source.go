package lab

import (
	"context"
	"encoding/json"
	"fmt"

	"lace-cni.io/lace/slowpath/agent"
	"lace-cni.io/lace/slowpath/source/dir"
)

// Source is where the agents of a lab read, in the place of its folder of YAML.
type Source struct {
	Name string          // as it was added by AddSource
	Spec json.RawMessage // what it is told
}

// Reader lets an agent read from a source: it sets what the agent's configuration says about
// one. What it returns runs beside the agent and ends with it; nil: nothing does.
type Reader func(spec []byte, c *agent.Config) (beside func(context.Context) error, err error)

// readers are the sources that users of the package have added.
var readers = map[string]Reader{}

// AddSource adds a source that a Topology can name. It is called before Main.
func AddSource(name string, r Reader) { readers[name] = r }

// read lets an agent read from its source.
func (s agentSpec) read(c *agent.Config) (beside func(context.Context) error, err error) {
	if s.Source == nil {
		c.Source, c.SourceName, c.ServiceCIDRs = dir.New(s.Manifests), "dir:"+s.Manifests, ServiceRanges
		return nil, nil
	}
	r := readers[s.Source.Name]
	if r == nil {
		return nil, fmt.Errorf("no source %q: add it before Main", s.Source.Name)
	}
	return r(s.Source.Spec, c)
}
