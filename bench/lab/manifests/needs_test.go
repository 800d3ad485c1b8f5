package manifests

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestMissing(t *testing.T) {
	const (
		nodes = "kind: Node\nmetadata: {name: n1}\n--- # the other one\nkind: Node\nmetadata: {name: n2}\n"
		web   = "kind: Service\nmetadata: {name: web}\nspec: {clusterIPs: [10.96.0.10, \"fd00:10:96::10\"]}\n"
		named = "Service default/web with clusterIPs [10.96.0.10 fd00:10:96::10]"
	)
	for _, c := range []struct {
		sentence, text string
		want           []string
	}{
		{"everything that is needed", nodes + "---\n" + web, nil},
		{"a node by another name", "kind: Node\nmetadata: {name: worker-1}\n---\n" + web, []string{"Node n1", "Node n2"}},
		{"no Service", nodes, []string{named}},
		{"web in another namespace", nodes + "---\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {clusterIPs: [10.96.0.10, \"fd00:10:96::10\"]}\n", []string{named}},
		{"web of one family", nodes + "---\nkind: Service\nmetadata: {name: web}\nspec: {clusterIPs: [10.96.0.10]}\n", []string{named}},
		{"no YAML is passed over", "a: {b\n---\n" + nodes + "---\n" + web, nil},
	} {
		got, err := Missing(fstest.MapFS{"all.yaml": {Data: []byte(c.text)}, "notes.txt": {Data: []byte("kind: Node")}})
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.sentence, err, diff)
		}
	}
	if got, err := Missing(Files); err != nil || len(got) > 0 {
		t.Errorf("of the lab's own: %v, %v", got, err)
	}
}
