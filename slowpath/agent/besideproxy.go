package agent

import (
	"errors"
	"fmt"
	"strings"

	"lace-cni.io/lace/slowpath/kubeproxy"
)

// ErrKubeProxy means that a kube-proxy carries the node's Services, or has left its rules.
var ErrKubeProxy = errors.New("kube-proxy is on this node")

// refuseBesideProxy refuses to start beside a kube-proxy: both would translate the same
// packets, each by endpoints of its own choice. Nothing has been changed yet.
func (c *Config) refuseBesideProxy(s kubeproxy.Signs) error {
	words := strings.Join(s.Words(), ", ")
	switch {
	case words == "":
		return nil
	case c.BesideProxy:
		c.Log.Warn("starting beside a kube-proxy, as asked to", "signs", words)
		return nil
	case len(s.Running) > 0:
		return fmt.Errorf("%w and runs (%s): two would translate the same packets. End it, start lace-agent with --beside-kube-proxy, and then have kube-proxy --cleanup remove its rules; docs/how-to/replace-kube-proxy.md has every step. Where it carries other Services than Lace, --beside-kube-proxy is all that is needed", ErrKubeProxy, words)
	}
	return fmt.Errorf("%w no longer, but its rules are (%s), and would translate what the node itself sends: have kube-proxy --cleanup remove them. To have Lace carry Services until they are removed, start it with --beside-kube-proxy; docs/how-to/replace-kube-proxy.md has every step", ErrKubeProxy, words)
}
