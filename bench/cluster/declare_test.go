package cluster

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Two Services, one of them with a status, behind a comment.
const declaredText = `# what the tests declare
---
{apiVersion: v1, kind: Service, metadata: {name: a, namespace: default}, spec: {type: LoadBalancer},
 status: {loadBalancer: {ingress: [{ip: 203.0.113.1}]}}}
---
{apiVersion: v1, kind: Service, metadata: {name: b, namespace: default}}
`

// TestDeclared: texts under names become requests to an API server.
func TestDeclared(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		line := r.Method + " " + r.URL.Path
		if b, _ := io.ReadAll(r.Body); len(b) > 0 {
			var object map[string]any
			if err := json.Unmarshal(b, &object); err != nil {
				t.Error(err)
			}
			for _, field := range []string{"spec", "status"} {
				if object[field] != nil {
					line += " " + field
				}
			}
			applied := r.Header.Get("Content-Type") == "application/apply-patch+yaml" && r.URL.Query().Get("force") == "true"
			if whole := !strings.HasSuffix(r.URL.Path, "/status"); applied != whole {
				t.Errorf("%s: applied %v, want %v: %v", line, applied, whole, r.Header)
			}
		}
		asked = append(asked, line)
	}))
	defer server.Close()
	d := &Declared{&Cluster{API: &API{server.URL, server.Client()}}, map[string][]string{}}
	slice := "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a-ipv4}}"
	for _, step := range []struct {
		sentence string
		do       func() error
		want     []string
		fails    string
	}{
		{"each object is applied, and its status by itself", func() error { return d.Save(t.Context(), "one", []byte(declaredText)) },
			[]string{"PATCH " + Services + "/a spec", "PATCH " + Services + "/a/status status", "PATCH " + Services + "/b"}, ""},
		{"what a name does not say any more is deleted", func() error {
			return d.Save(t.Context(), "one", []byte(declaredText[strings.LastIndex(declaredText, "---"):]))
		}, []string{"PATCH " + Services + "/b", "DELETE " + Services + "/a"}, ""},
		{"another name stands for itself", func() error { return d.Save(t.Context(), "two", []byte(slice)) }, []string{"PATCH " + Slices + "/a-ipv4"}, ""},
		{"what a name stands for is removed", func() error { return d.Remove(t.Context(), "one") }, []string{"DELETE " + Services + "/b"}, ""},
		{"a name that stands for nothing", func() error { return d.Remove(t.Context(), "one") }, nil, `nothing is declared under "one"`},
		{"a kind that no agent reads", func() error { return d.Save(t.Context(), "pod", []byte("{kind: Pod, metadata: {name: p}}")) }, nil, `Pod "p"`},
		{"no YAML", func() error { return d.Save(t.Context(), "odd", []byte("\t{")) }, nil, "odd: "},
	} {
		asked = nil
		err := step.do()
		if diff := cmp.Diff(step.want, asked); diff != "" {
			t.Errorf("%s: asked for %s", step.sentence, diff)
		}
		if step.fails == "" && err != nil || step.fails != "" && (err == nil || !strings.Contains(err.Error(), step.fails)) {
			t.Errorf("%s: %v, want an error that says %q", step.sentence, err, step.fails)
		}
	}
}
