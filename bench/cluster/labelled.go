package cluster

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"lace-cni.io/lace/bench/lab"
)

// proxyName is the label by which Services are left to another proxy.
const proxyName = "service.kubernetes.io/service-proxy-name"

// labelledPort is where kube-proxies ask on the outside host that carry labelled Services.
const labelledPort = "6444"

// otherPorts are kube-proxy's own, where Lace has those that are usual.
var otherPorts = []string{"--healthz-bind-address", "127.0.0.1:10266", "--metrics-bind-address", "127.0.0.1:10259"}

// ServeLabelled answers as the API server does, but for one thing: who asks for Services
// without the label service-proxy-name gets those whose label has this value. So an
// unchanged kube-proxy, which has no setting for it, carries the Services that are left to a
// proxy of that name. It ends with the lab.
func (c *Cluster) ServeLabelled(value string) (server string, err error) {
	as, err := c.keys.client(kubeProxyUser)
	if err != nil {
		return "", err
	}
	host := c.Outside()
	target, err := url.Parse(c.server)
	if err != nil {
		return "", err
	}
	l, err := listenIn(host.PID(), "tcp", net.JoinHostPort(host.Addr4.String(), labelledPort))
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, // watches are answers without end
		Transport: &http.Transport{TLSClientConfig: as, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialIn(ctx, host.PID(), network, addr)
		}},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			q := r.Out.URL.Query()
			q.Set("labelSelector", strings.ReplaceAll(q.Get("labelSelector"), "!"+proxyName, proxyName+"="+value))
			r.Out.URL.RawQuery = q.Encode()
		},
	}
	s := &http.Server{Handler: proxy}
	go func() { _ = s.Serve(l) }() // until the listener is closed
	c.ends = append(c.ends, s.Close)
	return "http://" + l.Addr().String(), nil
}

// StartLabelledKubeProxy starts a node's kube-proxy on what ServeLabelled answers.
func (c *Cluster) StartLabelledKubeProxy(ctx context.Context, n *lab.Node, server, mode string) error {
	return c.startKubeProxy(ctx, n, server, append([]string{"--proxy-mode", mode}, otherPorts...)...)
}
