package cluster

import (
	"context"
	"encoding/json"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/slowpath/agent"
	"lace-cni.io/lace/slowpath/source/kube"
)

// sourceName is what labs call the API server as a source.
const sourceName = "kube"

// sourceSpec says where the API server is, and by what an agent is let in.
type sourceSpec struct {
	Servers    []string
	Kubeconfig string
}

// read lets an agent read from the API server, as lace-agent does, and tell it Events. What
// it returns runs beside the agent.
func (s sourceSpec) read(c *agent.Config) (tell func(context.Context) error, err error) {
	k, err := kube.New(kube.Config{Servers: s.Servers, Kubeconfig: s.Kubeconfig, Node: c.NodeName, Version: c.Version, Log: c.Log})
	if err != nil {
		return nil, err
	}
	teller := kube.NewTeller(k)
	c.Source, c.SourceName, c.SourcePart, c.Tell = k, sourceName, true, teller.Tell
	return teller.Run, nil
}

// readAPI is read for agents of a lab.
func readAPI(text []byte, c *agent.Config) (func(context.Context) error, error) {
	var s sourceSpec
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	return s.read(c)
}

// sourceFor makes the credentials of a user, whose rights are the caller's business.
func (c *Cluster) sourceFor(user string) (s sourceSpec, err error) {
	if _, err := c.keys.client(user); err != nil {
		return s, err
	}
	s.Servers = []string{c.server}
	s.Kubeconfig, err = c.keys.kubeconfig(user, c.server)
	return s, err
}

// Source lets agents of another lab read from this API server as a user; see Reach.
func (c *Cluster) Source(user string) (*lab.Source, error) {
	s, err := c.sourceFor(user)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(s)
	return &lab.Source{Name: sourceName, Spec: b}, err
}
