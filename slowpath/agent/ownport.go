package agent

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// ports are those at which the agent answers on addresses of the node: Services must not have
// them there. What is answered on loopback addresses alone nobody takes away.
func (c *Config) ports() (out []uint16) {
	for _, at := range []string{c.HealthAddr, c.MetricsAddr} {
		host, text, err := net.SplitHostPort(at)
		port, bad := strconv.ParseUint(text, 10, 16)
		if err != nil || bad != nil || port == 0 || loopback(host) || slices.Contains(out, uint16(port)) {
			continue // not served, or told when it is to be listened on
		}
		out = append(out, uint16(port))
	}
	return out
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() || host == "localhost"
}
