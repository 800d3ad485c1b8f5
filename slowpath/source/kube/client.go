package kube

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// How long a server may be silent. They follow from the 5 s in which a node has to equal
// the API after a server's return: a connection that leads nowhere must be given up, and
// a new one made, in less.
const (
	dialTimeout      = time.Second
	handshakeTimeout = 3 * time.Second
	silence          = 1500 * time.Millisecond // then the server is asked for a sign of life
	answerTimeout    = 2 * time.Second         // then the connection is given up
)

// client speaks to the API servers.
type client struct {
	core, discovery, networking, events *rest.RESTClient
	metadata                            metadata.Interface
	transport                           *http.Transport
}

// kinds of objects that are decoded, and no others: a scheme of all that Kubernetes has
// would be most of the program.
var (
	scheme = func() *runtime.Scheme {
		s := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, eventsv1.AddToScheme} {
			if err := add(s); err != nil {
				panic(err) // of types that are compiled in
			}
		}
		metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
		return s
	}()
	codecs = serializer.NewCodecFactory(scheme)
)

const protobuf = "application/vnd.kubernetes.protobuf"

// newClient makes the connections' ways; none is used yet.
func newClient(config *rest.Config, servers []*url.URL) (*client, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: -1} // signs of life are asked for by HTTP
	c := &client{transport: newTransport(dialer.DialContext)}
	c.transport.TLSClientConfig = tls
	return c, c.open(config, servers)
}

func newTransport(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: handshakeTimeout,
		IdleConnTimeout:     time.Minute,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: answerTimeout, WriteByteTimeout: answerTimeout},
	}
}

// open makes a client for each API group, all on one connection.
func (c *client) open(config *rest.Config, servers []*url.URL) error {
	// Credentials are put on each attempt, after its server was chosen.
	wrapped, err := rest.HTTPWrappersForConfig(config, c.transport)
	if err != nil {
		return err
	}
	web := &http.Client{Transport: &turn{servers: servers, next: wrapped}}
	bare := &rest.Config{Host: config.Host, UserAgent: config.UserAgent, QPS: -1} // retries have their own pace
	for _, g := range []struct {
		into  **rest.RESTClient
		path  string
		group schema.GroupVersion
	}{
		{&c.core, "/api", corev1.SchemeGroupVersion},
		{&c.discovery, "/apis", discoveryv1.SchemeGroupVersion},
		{&c.networking, "/apis", networkingv1.SchemeGroupVersion},
		{&c.events, "/apis", eventsv1.SchemeGroupVersion},
	} {
		one := rest.CopyConfig(bare)
		one.APIPath, one.GroupVersion = g.path, &g.group
		one.NegotiatedSerializer = codecs.WithoutConversion()
		one.ContentType, one.AcceptContentTypes = protobuf, protobuf+",application/json"
		if *g.into, err = rest.RESTClientForConfigAndClient(one, web); err != nil {
			return err
		}
	}
	c.metadata, err = metadata.NewForConfigAndClient(bare, web)
	return err
}

func (c *client) close() { c.transport.CloseIdleConnections() }
