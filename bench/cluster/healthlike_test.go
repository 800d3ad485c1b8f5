//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/bench/lab"
)

// meant are the differences between what Lace and kube-proxy answer that are documented, by
// what is asked and what differs; "everything" is whether there is an answer at all. No other
// may be, and each of them must.
var meant = map[string]string{
	"127.0.0.1:10249/proxyMode body":                    "it is lace (lace-agent.md)",
	"127.0.0.1:10249/configz keys":                      "the configuration is lace-agent's (lace-agent.md)",
	"127.0.0.1:healthCheckNodePort/healthz everything":  "Lace answers at every address of the node (services.md); kube-proxy at those where node ports are",
	"192.0.2.11:healthCheckNodePort/healthz everything": "the same",
}

// reply is what a place has answered, as far as it must be the same: a header that is not
// there is empty, and of a JSON body the keys count, with what kind of value they have.
type reply map[string]string

func (s *stage) reply(method, at, path string) (reply, error) {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dialIn(ctx, s.Node("n1").PID(), network, addr)
	}}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	q, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+at+path, nil)
	if err != nil {
		return nil, err
	}
	a, err := client.Do(q)
	if err != nil {
		return reply{"refused": fmt.Sprint(strings.Contains(err.Error(), "connection refused"))}, nil
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, err
	}
	r := reply{"status": a.Status}
	for _, h := range []string{"Content-Type", "X-Content-Type-Options", "X-Load-Balancing-Endpoint-Weight", "Allow"} {
		r[h] = a.Header.Get(h)
	}
	var parsed any
	switch {
	case json.Unmarshal(body, &parsed) == nil:
		r["keys"] = strings.Join(keysOf("", parsed), " ")
	case strings.HasPrefix(path, "/metrics"):
	default:
		r["body"] = string(body)
	}
	return r, nil
}

// keysOf are the paths of all values within one of JSON, with their kinds; numbers and
// truths are written out.
func keysOf(at string, v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, keysOf(at+"."+k, v[k])...)
		}
		return out
	case bool, float64:
		return []string{fmt.Sprintf("%s=%v", at, v)}
	}
	return []string{fmt.Sprintf("%s:%T", at, v)}
}

// differ lists what differs and is not meant to, and what is meant to and does not. where is
// what was asked.
func differ(where string, lace, kernel reply) (out []string) {
	if _, alone := meant[where+" everything"]; alone {
		if lace["status"] == "" || kernel["refused"] != "true" {
			return []string{fmt.Sprintf("%s: Lace %v, kube-proxy %v, want an answer of Lace alone", where, lace, kernel)}
		}
		return nil
	}
	fields := maps.Clone(kernel)
	maps.Copy(fields, lace)
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if _, is := meant[where+" "+f]; is != (lace[f] != kernel[f]) {
			out = append(out, fmt.Sprintf("%s %s: Lace %q, kube-proxy %q, meant to differ: %v", where, f, lace[f], kernel[f], is))
		}
	}
	return out
}

// same waits until both answer alike, since each learns of a change in its own time, and Lace
// with this status; none: not at all.
func (c *comparison) same(what, method, at, path, status string) {
	c.kernel.t.Helper()
	where := at + path
	if c.healthPort != "" {
		where = strings.ReplaceAll(at, c.healthPort, ":healthCheckNodePort") + path
	}
	c.kernel.eventually(what+": "+method+" "+at+path, func() error {
		lace, err := c.lace.reply(method, at, path)
		if err != nil {
			return err
		}
		kernel, err := c.kernel.reply(method, at, path)
		if err != nil {
			return err
		}
		if d := differ(where, lace, kernel); len(d) > 0 {
			return errors.New(strings.Join(d, "\n"))
		}
		if got, _, _ := strings.Cut(lace["status"], " "); got != status {
			return fmt.Errorf("%v, want %q", lace, status)
		}
		return nil
	})
}

// health compares what is answered at health ports, of the node and of Services.
func (c *comparison) health(t *testing.T) {
	c.kernel.t, c.lace.t = t, t
	if !c.running {
		c.change(ways[0])
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost} {
		for _, at := range []string{"172.30.0.11:10256", "192.0.2.11:10256", "127.0.0.1:10256"} {
			for _, path := range []string{"/healthz", "/livez"} {
				c.same("in good health", method, at, path, "200")
			}
			c.same("nothing there", method, at, "/readyz", "404")
		}
		c.same("of the process", method, "127.0.0.1:10249", "/healthz", "200")
	}
	for _, path := range []string{"/proxyMode", "/configz", "/metrics"} {
		c.same("of the process", http.MethodGet, "127.0.0.1:10249", path, "200")
	}
	c.same("not for others", http.MethodGet, "172.30.0.11:10249", "/healthz", "")
	c.watched()
	w := c.kernel
	taint := []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
	w.must(w.API.Patch(t.Context(), Nodes+"/n1", map[string]any{"spec": map[string]any{"taints": taint}}, nil))
	c.same("about to be removed", http.MethodGet, "172.30.0.11:10256", "/healthz", "503")
	c.same("about to be removed", http.MethodGet, "172.30.0.11:10256", "/livez", "200")
	w.must(w.API.Patch(t.Context(), Nodes+"/n1", map[string]any{"spec": map[string]any{"taints": nil}}, nil))
	c.same("to stay", http.MethodGet, "172.30.0.11:10256", "/healthz", "200")
}

// watched compares the health check port of a Service over its life.
func (c *comparison) watched() {
	w := c.kernel
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}
	s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
	s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	made, err := w.CreateService(w.t.Context(), s)
	w.must(err)
	c.healthPort = fmt.Sprint(":", made.Spec.HealthCheckNodePort)
	four, six := "172.30.0.11"+c.healthPort, "[fd30::11]"+c.healthPort
	for _, path := range []string{"/", "/healthz", "/any/where?at=all"} {
		c.same("without endpoints", http.MethodGet, four, path, "503")
	}
	es := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(lab.WebTarget))}}}
	es.Name, es.Labels = "watched", map[string]string{discoveryv1.LabelServiceName: "watched"}
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{Addresses: []string{w.Pod(name).Addr4.String()}, NodeName: &w.Pod(name).Node})
	}
	w.must(w.API.Create(w.t.Context(), Slices, es, nil))
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost} {
		c.same("two endpoints", method, four, "/healthz", "200")
	}
	for _, at := range []string{"127.0.0.1", "192.0.2.11"} {
		c.same("another address of the node", http.MethodGet, at+c.healthPort, "/healthz", "200")
	}
	c.same("a family that the Service does not have", http.MethodGet, six, "/healthz", "")
	for i := range es.Endpoints[:2] {
		es.Endpoints[i].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	}
	w.must(w.API.Put(w.t.Context(), Slices+"/watched", es, nil))
	c.same("both drain", http.MethodGet, four, "/healthz", "503")
	w.must(w.API.Delete(w.t.Context(), Services+"/watched"))
	c.same("gone", http.MethodGet, four, "/healthz", "")
}
