package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/slowpath/source"
)

// nodes is a source of one Node, as it becomes.
type nodes chan *corev1.Node

func (n nodes) Run(ctx context.Context, sink source.Sink) error {
	sink.Synced()
	for {
		select {
		case <-ctx.Done():
			return nil
		case node := <-n:
			c := source.Change{Kind: source.Node, Name: model.Name{Name: "n1"}}
			if node != nil {
				c.Object = node
			}
			sink.Apply([]source.Change{c}, nil)
		}
	}
}

// TestProbesFollowTheNode: load balancers are turned away from a node that goes, and its
// agent is left alone; both are counted.
func TestProbesFollowTheNode(t *testing.T) {
	c, n := config(t, io.Discard), make(nodes)
	c.Source = n
	client := start(t, c)
	eventually(t, "something is published", func() error {
		s, err := client.Status(t.Context())
		if err != nil || s.Generation.Published == 0 {
			return fmt.Errorf("%+v, %v", s.Generation, err)
		}
		return nil
	})
	counters, err := counter.Create(c.path("counters"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer counters.Close()
	counters.Worker(0).Publish(monotonic() + time.Hour.Nanoseconds()) // alive for the whole test
	counters.Set(counter.Generation, 1<<40)                           // whatever is published is in use
	taint := func(keys ...string) *corev1.Node {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		for _, k := range keys {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: k, Effect: corev1.TaintEffectNoSchedule})
		}
		return node
	}
	going := taint()
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for _, step := range []struct {
		name string
		node *corev1.Node
		code int
		says string
	}{
		{"the node is well", taint(), 200, `"nodeEligible":true,"healthy":true`},
		{"the autoscaler is about to remove it", taint("ToBeDeletedByClusterAutoscaler"), 503, `"nodeEligible":false,"healthy":true`},
		{"the autoscaler has changed its mind", taint(), 200, `"nodeEligible":true`},
		{"it is unschedulable, which does not matter", taint("node.kubernetes.io/unschedulable"), 200, `"nodeEligible":true`},
		{"it is being deleted", going, 503, `"nodeEligible":false`},
		{"it is there again", taint(), 200, `"nodeEligible":true`},
		{"it is gone", nil, 503, `"nodeEligible":false`},
	} {
		n <- step.node
		eventually(t, step.name, func() error {
			code, body := probe(t, "http://"+c.HealthAddr+"/healthz")
			if code != step.code || !strings.Contains(body, step.says) || !strings.Contains(body, "lastUpdated") {
				return fmt.Errorf("%d %s", code, body)
			}
			return nil
		})
		if code, body := probe(t, "http://"+c.HealthAddr+"/livez"); code != 200 || strings.Contains(body, "nodeEligible") {
			t.Errorf("%s: /livez says %d %s, want 200 and nothing of the node", step.name, code, body)
		}
	}
	page := fetch(t, "http://"+c.MetricsAddr+"/metrics")
	for _, line := range []string{`kubeproxy_proxy_livez_total{code="200"} 7`, `kubeproxy_proxy_livez_total{code="503"} 0`} {
		if !strings.Contains(page, line) {
			t.Errorf("no line %s", line)
		}
	}
	indicators := fetch(t, "http://"+c.MetricsAddr+"/metrics/slis")
	for _, line := range []string{
		`kubernetes_healthcheck{name="node-eligible",type="healthz"} 0`, `kubernetes_healthcheck{name="fastpath",type="healthz"} 1`,
		`kubernetes_healthchecks_total{name="publishing",status="success",type="livez"} 7`,
	} {
		if !strings.Contains(indicators, line) {
			t.Errorf("no line %s in %s", line, indicators)
		}
	}
	if strings.Contains(page, `kubeproxy_proxy_healthz_total{code="503"} 0`) {
		t.Error("failures of /healthz are not counted")
	}
}

func probe(t *testing.T, url string) (int, string) {
	t.Helper()
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}
