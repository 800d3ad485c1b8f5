package agent

import (
	"time"

	"lace-cni.io/lace/fastpath/table"
)

// configz is what an agent goes by, as its flags and defaults have it: the page /configz.
// Credentials are not part of it, nor where they are.
type configz struct {
	Version            string        `json:"version"`
	NodeName           string        `json:"nodeName"`
	Source             string        `json:"source"`
	APIServers         []string      `json:"apiServers"`
	StateDir           string        `json:"stateDir"`
	BPFFS              string        `json:"bpffs"`
	ServiceCIDRs       []string      `json:"serviceCIDRs"` // empty: as ServiceCIDR objects declare them
	NodePortAddresses  string        `json:"nodePortAddresses"`
	HealthzBindAddress string        `json:"healthzBindAddress"`
	MetricsBindAddress string        `json:"metricsBindAddress"`
	Profiling          bool          `json:"profiling"`
	Mode               string        `json:"mode"`
	Lane               string        `json:"lane"`
	Delivery           string        `json:"delivery"`
	BesideProxy        bool          `json:"besideKubeProxy"`
	SourcePorts        [2]uint16     `json:"sourcePorts"`
	HalfOpenMax        uint32        `json:"halfOpenMax"`
	AnswersPerSecond   uint32        `json:"answersPerSecond"`
	Timeouts           configTimeout `json:"timeouts"`
}

// configTimeout are the idle times after which flows are forgotten, in words such as 24h0m0s.
type configTimeout struct {
	TCPHalfOpen    string `json:"tcpHalfOpen"`
	TCPEstablished string `json:"tcpEstablished"`
	TCPClosing     string `json:"tcpClosing"`
	TCPClosed      string `json:"tcpClosed"`
	UDPNew         string `json:"udpNew"`
	UDP            string `json:"udp"`
	SCTP           string `json:"sctp"`
}

// effective is the configuration under the name of the program, as kube-proxy's is under its.
func (c *Config) effective() any {
	s := c.Settings
	if s == (table.Settings{}) {
		s = table.DefaultSettings()
	}
	out := configz{
		Version: c.Version, NodeName: c.NodeName, Source: c.SourceName, APIServers: []string{},
		StateDir: c.StateDir, BPFFS: c.BPFFS, ServiceCIDRs: []string{}, NodePortAddresses: c.NodePorts.String(),
		HealthzBindAddress: c.HealthAddr, MetricsBindAddress: c.MetricsAddr, Profiling: c.Profiling,
		Mode: "lace", Lane: "off", Delivery: c.Delivery.String(), BesideProxy: c.BesideProxy,
		SourcePorts: [2]uint16{s.SourcePortFirst, s.SourcePortLast}, HalfOpenMax: s.HalfOpenMax, AnswersPerSecond: s.AnswersPerSecond,
		Timeouts: timeouts(&s.Timeouts),
	}
	if s.Lane != 0 {
		out.Lane = "on"
	}
	for _, a := range c.APIServers {
		out.APIServers = append(out.APIServers, a.String())
	}
	for _, p := range c.ServiceCIDRs {
		out.ServiceCIDRs = append(out.ServiceCIDRs, p.String())
	}
	return map[string]configz{"lace-agent": out}
}

func timeouts(t *table.Timeouts) configTimeout {
	of := func(ns int64) string { return time.Duration(ns).String() }
	return configTimeout{
		TCPHalfOpen: of(t.TCPHalfOpen), TCPEstablished: of(t.TCPEstablished), TCPClosing: of(t.TCPClosing), TCPClosed: of(t.TCPClosed),
		UDPNew: of(t.UDPNew), UDP: of(t.UDP), SCTP: of(t.SCTP),
	}
}
