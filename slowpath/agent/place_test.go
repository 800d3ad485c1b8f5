package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/slowpath/source/dir"
)

// nowhereWritten are the places of objects that are in no file.
func nowhereWritten(model.Problem) source.Place { return source.Place{} }

// wrong is a Node and a Service with bad addresses, and a slice of no Service.
const wrong = `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 172.30.0.x}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.96.0.x, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: wep}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.244.1.5]}]
`

// TestProblemsNameTheLine of the folder, in what the agent says and in its log, and follow
// objects that move without a change of theirs. A Problem of the machine has none.
func TestProblemsNameTheLine(t *testing.T) {
	var log journal
	c := config(t, &log)
	path := t.TempDir()
	folder := dir.New(path)
	folder.Log, folder.Poll = c.Log, 20*time.Millisecond
	c.Source, c.SourceName = folder, "dir:"+path
	put := func(name, text string) {
		t.Helper()
		temporary := filepath.Join(t.TempDir(), "new")
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	put("all.yaml", wrong)
	client := start(t, c)
	says := func(what string, want ...string) {
		t.Helper()
		eventually(t, what, func() error {
			problems, err := client.Problems(t.Context())
			if err != nil {
				return err
			}
			places := map[string]string{}
			for _, p := range problems.Items {
				places[p.Kind+" "+p.Reason] = p.Place.String()
			}
			for i := 0; i < len(want); i += 2 {
				if at, there := places[want[i]]; !there || at != want[i+1] {
					return fmt.Errorf("%s is told to be at %q, want %q: %+v", want[i], at, want[i+1], problems.Items)
				}
			}
			return nil
		})
	}
	says("each Problem has the place of its object",
		"Node BadAddress", "all.yaml document 1 line 1", "Service BadAddress", "all.yaml document 2 line 6",
		"EndpointSlice NoService", "all.yaml document 3 line 11", "Node FastpathDown", "")
	eventually(t, "the log says it", func() error {
		for _, words := range []string{`BadAddress place="all.yaml document 2 line 6"`, `NoService place="all.yaml document 3 line 11"`} {
			if !strings.Contains(log.String(), "reason="+words) {
				return fmt.Errorf("%s", &log)
			}
		}
		return nil
	})
	put("all.yaml", "# it moves down\n"+wrong)
	says("another line", "Service BadAddress", "all.yaml document 2 line 7", "EndpointSlice NoService", "all.yaml document 3 line 12")
	documents := strings.Split(wrong, "---\n")
	put("a.yaml", documents[1])
	put("all.yaml", documents[0]+"---\n"+documents[2])
	says("another file", "Service BadAddress", "a.yaml document 1 line 1", "EndpointSlice NoService", "all.yaml document 2 line 6")
	twice := strings.Count(log.String(), "reason=DuplicateObject place=") // for the moment in which it is in both files
	if n := strings.Count(log.String(), " place=") - twice; n != 3 {
		t.Errorf("the log tells %d times of three Problems, which are the same in each place:\n%s", n, &log)
	}
}

// TestASourceWithoutPlaces has none to name: nothing is said of any.
func TestASourceWithoutPlaces(t *testing.T) {
	var log journal
	c := config(t, &log)
	client := start(t, c)
	eventually(t, "a Problem is told without a place", func() error {
		problems, err := client.Problems(t.Context())
		if err != nil || len(problems.Items) == 0 || problems.Items[0].Place != (api.Place{}) {
			return fmt.Errorf("%+v, %v", problems.Items, err)
		}
		return nil
	})
	if strings.Contains(log.String(), "place=") {
		t.Errorf("the log: %s", &log)
	}
}
