package publish_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/source/dir"
)

const goodService = `
apiVersion: v1
kind: Service
metadata: {name: good, namespace: good, creationTimestamp: "1990-01-01T00:00:00Z"}
spec: {clusterIP: 10.96.0.1, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: good-1, namespace: good, labels: {kubernetes.io/service-name: good}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.244.1.1]}]
`

// goodGives is what it gives alone.
var goodGives = []string{"10.96.0.1:80/TCP 0 0 10.244.1.1:8080 | 10.244.1.1:8080 | 10.244.1.1:8080 []"}

// FuzzObjects takes whatever YAML or JSON there is all the way into tables, beside a Service
// that is right. Nothing panics, the tables can be loaded, a Service that is to be served
// and is not has a Problem, no Problem is told twice, and the right one gives what it gives
// alone and has none. FuzzOneMistake counts Problems by mistakes.
func FuzzObjects(f *testing.F) {
	f.Add(goodService)
	f.Add(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"type":"LoadBalancer","clusterIP":"10.96.0.1","externalIPs":["10.96.0.1","x"],"loadBalancerSourceRanges":["::/0","y"],"ports":[{"port":80,"nodePort":-1}]},"status":{"loadBalancer":{"ingress":[{"ip":"10.244.1.1"}]}}}`)
	f.Add("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: NodePort, clusterIPs: [10.96.0.2, 'fd00::1'], ipFamilies: [IPv6, IPv4], sessionAffinity: ClientIP, ports: [{port: 80, nodePort: 30080}, {port: 70000}]}\n---\n" +
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\nports: [{port: 8080}, {port: 0, name: a}]\nendpoints: [{addresses: [10.96.0.1], hints: {forZones: [{name: z}]}}, {addresses: []}, {addresses: ['::1'], conditions: {ready: false}}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		o := resolve.NewObjects()
		put(o, goodService, "good")
		put(o, text, "fuzz")
		wiring := wired()
		here, _ := o.Here("n1")
		here.NodePorts = resolve.NodePorts{}.Of(here, &wiring)
		here.Aliases = resolve.Own(&wiring)
		c := compile.New(nil)
		c.SetSettings(table.DefaultSettings())
		c.SetAttachments(wiring)
		blamed := make(map[string]bool)
		told := make(map[model.Problem]bool)
		tell := func(problems []model.Problem) {
			for _, p := range problems {
				if told[p] {
					t.Errorf("told twice: %+v", p)
				}
				if strings.HasPrefix(p.Object, "good/") {
					t.Errorf("blamed for others: %+v", p)
				}
				blamed[p.Object], told[p] = true, true
			}
		}
		var served []*model.Service
		for _, n := range o.Names() {
			s, problems := o.Resolve(n, here)
			tell(problems)
			if s != nil {
				served = append(served, s)
				c.SetService(s)
			} else if svc := o.Services[n]; svc != nil && resolve.OptOut(svc, o.SlicesOf(n)) == "" && len(problems) == 0 {
				t.Errorf("Service %s is not served, and nobody is told", n)
			}
		}
		b, problems, err := c.Snapshot(1, time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		tell(problems)
		tables, err := table.Load(b)
		if err != nil {
			t.Fatal(err)
		}
		judge(t, tables, served, blamed)
	})
}

// put takes what can be read of a text into the objects, all in one namespace.
func put(o *resolve.Objects, text, namespace string) {
	read, _ := dir.Decode("f.yaml", []byte(text))
	for _, object := range read {
		n := model.Name{Namespace: namespace, Name: object.Name.Name}
		switch v := object.Object.(type) {
		case *corev1.Service:
			v.Namespace = namespace
			if namespace != "good" {
				v.CreationTimestamp = metav1.Unix(1<<30, 0) // later: what two want is the older one's
			}
			o.PutService(n, v)
		case *discoveryv1.EndpointSlice:
			v.Namespace = namespace
			o.PutSlice(n, v)
		case *corev1.Node:
			o.PutNode(n.Name, v)
		}
	}
}

func judge(t *testing.T, tables *table.Snapshot, served []*model.Service, blamed map[string]bool) {
	has := func(a netip.Addr, port uint16, protocol model.Protocol) bool {
		addr := packet.AddrFrom(a)
		return tables.Frontend(0, &addr, uint8(protocol), port) != nil
	}
	for _, s := range served {
		for i := range s.Ports {
			for _, f := range s.Ports[i].Frontends {
				if !has(f.Addr, f.Port, f.Protocol) && !blamed[s.Name.String()] {
					t.Errorf("%s of Service %s is not served, and nobody is told", f.Addr, s.Name)
				}
			}
		}
	}
	if got := given(tables, served)["good"]; !slices.Equal(got, goodGives) {
		t.Errorf("the right Service gives %q, alone %q", got, goodGives)
	}
}
