package agent

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/kubeproxy"
)

// proxyEvery is how often a kube-proxy is looked for. Where none is, a look takes a fraction of
// a millisecond.
const proxyEvery = 10 * time.Second

// proxyWatch notices a kube-proxy that comes to a node where Lace serves already. It only
// tells: what reaches Lace goes on being served.
type proxyWatch struct {
	node  string
	look  func() kubeproxy.Signs
	every time.Duration
	log   *slog.Logger
	sign  atomic.Pointer[model.Problem] // nil: there is none
}

// newProxyWatch returns nil where Lace was asked to run beside one: then it is no surprise.
func newProxyWatch(c *Config) *proxyWatch {
	if c.BesideProxy {
		return nil
	}
	return &proxyWatch{node: c.NodeName, look: signsOfProxy, every: proxyEvery, log: c.Log}
}

// signsOfProxy looks at every process only where there is another sign: the Problem then
// names the one.
func signsOfProxy() kubeproxy.Signs {
	if s := kubeproxy.Glance(); len(s.Words()) == 0 {
		return s
	}
	return kubeproxy.Look()
}

// run looks every few seconds until ctx ends.
func (w *proxyWatch) run(ctx context.Context) error {
	if w == nil {
		return nil
	}
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			w.note(w.look())
		}
	}
}

// note keeps what was seen, and logs when a kube-proxy comes and goes.
func (w *proxyWatch) note(s kubeproxy.Signs) {
	was, now := w.sign.Load(), w.problem(s)
	w.sign.Store(now)
	switch {
	case was == nil && now != nil:
		w.log.Warn(now.Message, "reason", now.Reason)
	case was != nil && now == nil:
		w.log.Info("there is no sign of a kube-proxy any more")
	}
}

// problem puts signs into words; nil: there are none.
func (w *proxyWatch) problem(s kubeproxy.Signs) *model.Problem {
	words := strings.Join(s.Words(), ", ")
	if words == "" {
		return nil
	}
	p := &model.Problem{Kind: "Node", Object: w.node, Reason: "KubeProxyBeside"}
	const rest = "what the node's own processes send to Services may go to endpoints of its choice, all else goes on through Lace"
	if len(s.Running) > 0 {
		p.Message = fmt.Sprintf("a kube-proxy was started on this node while Lace serves it (%s): %s. End it and have kube-proxy --cleanup remove its rules; where it carries other Services than Lace, start lace-agent with --beside-kube-proxy", words, rest)
	} else {
		p.Message = fmt.Sprintf("rules of a kube-proxy came to this node while Lace serves it (%s): %s. Have kube-proxy --cleanup remove them", words, rest)
	}
	return p
}

// found is the Problem of the last look.
func (w *proxyWatch) found() []model.Problem {
	if w == nil {
		return nil
	}
	if p := w.sign.Load(); p != nil {
		return []model.Problem{*p}
	}
	return nil
}
