package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// TestPlacesOfProblems: of a folder each Problem is listed with file, document and line of its
// object; beside an API server there is no such column.
func TestPlacesOfProblems(t *testing.T) {
	web := api.Problem{Kind: "Service", Object: "default/web", Field: "spec.clusterIP", Reason: "BadAddress", Message: "x is none; correct it"}
	node := api.Problem{Kind: "Node", Object: "n1", Reason: "FastpathDown", Message: "start it"}
	written := web
	written.Place = api.Place{File: "web.yaml", Document: 1, Line: 3, Item: "items[2]"}
	for _, c := range []struct {
		name     string
		problems []api.Problem
		want     string
	}{
		{"an API server", []api.Problem{node, web}, "" +
			"KIND     OBJECT       FIELD           REASON        MESSAGE\n" +
			"Node     n1           -               FastpathDown  start it\n" +
			"Service  default/web  spec.clusterIP  BadAddress    x is none; correct it\n"},
		{"a folder", []api.Problem{node, written}, "" +
			"KIND     OBJECT       FIELD           REASON        PLACE                                MESSAGE\n" +
			"Node     n1           -               FastpathDown  -                                    start it\n" +
			"Service  default/web  spec.clusterIP  BadAddress    web.yaml document 1 line 3 items[2]  x is none; correct it\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := told(t, map[string]any{api.PathProblems: api.List[api.Problem]{Items: c.problems}}, "get", "problems")
			if d := cmp.Diff(c.want, out); d != "" || code != 0 || errs != "" {
				t.Errorf("exit code %d, message %q, output (-want +got):\n%s", code, errs, d)
			}
		})
	}
}
