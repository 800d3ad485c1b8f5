package main

import (
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

func TestStatus(t *testing.T) {
	good := api.Status{
		Node: "n1", Ready: true, Generation: api.Generation{InUse: 7, Published: 7},
		Fastpath: api.Fastpath{Alive: true, PID: 77, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), StartSeconds: 0.151, Sockets: api.SocketsAttached, Open: 12, Flows: 900, FlowsMax: 1000},
		Repairs:  map[string]uint64{"program": 2, "route": 1, "trunk": 0},
	}
	down := good
	down.Ready, down.Waiting, down.Repairs = false, "lace-fastpath is not running", nil
	down.Fastpath = api.Fastpath{Message: "lace-fastpath is not running"}
	down.Objects.Problems = 3
	detached := good
	detached.Fastpath.Sockets = "no hierarchy"
	behind := good
	behind.Ready, behind.Waiting = false, "the first snapshot is not published yet"
	simulated := good
	simulated.Simulated, simulated.Fastpath = true, api.Fastpath{Alive: true}
	for _, c := range []struct {
		sentence string
		status   api.Status
		args     []string
		code     int
		says     []string
	}{
		{"all is well", good, nil, 0, []string{"yes", "process 77 since 2026-01-02 03:04:05, was ready after 151ms", "7 in use, 7 published", "12 open, 900 registered, room for 1000", "none", "program 2, route 1", "own node ports  reached by the node's own processes"}},
		{"its processes do not reach its own node ports", detached, nil, 0, []string{"not reached by the node's own processes: no hierarchy"}},
		{"nothing is a process in a simulation", simulated, nil, 0, []string{"fast path       simulated: runs in memory"}},
		{"the fast path is down", down, nil, 1, []string{"no: new connections need the fast path\n", "lace-fastpath is not running\n", "3: lace get problems", "nothing"}},
		{"it runs, and waits for something else", behind, nil, 1, []string{"no: the first snapshot is not published yet\n"}},
		{"for programs", good, []string{"-o", "json"}, 0, []string{`"startSeconds": 0.151`, `"program": 2`}},
		{"for programs, when it is down", down, []string{"-o", "yaml"}, 1, []string{"ready: false"}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			code, out, errs := told(t, map[string]any{api.PathStatus: c.status}, append([]string{"get", "status"}, c.args...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, errs)
			}
			for _, word := range c.says {
				if !strings.Contains(out, word) {
					t.Errorf("says %q, want %q in it", out, word)
				}
			}
		})
	}
}
