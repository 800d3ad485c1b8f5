package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// asLace in the environment makes this executable the command itself.
const asLace = "LACE_TEST_AS_LACE"

func TestMain(m *testing.M) {
	lab.Main()
	if os.Getenv(asLace) != "" {
		main()
	}
	os.Exit(m.Run())
}

var (
	endpoint = api.Endpoint{Address: "10.244.1.11", Port: 8080, Pod: "default/web-1", Ready: true, Serving: true, Local: true}
	webFlow  = api.Flow{
		Protocol: "TCP", Client: "10.244.1.13:40000", Frontend: "10.96.0.10:80", Backend: "10.244.1.11:8080",
		Service: "default/web", Pod: "default/web-1", State: "established", Mode: "go", Idle: 1.25,
	}
	explained = api.Explanation{
		From: "shopper", To: "10.96.0.10:80/tcp", Source: "10.244.1.13:40001", Port: "veth-shopper", Generation: 9,
		Steps:   []api.Step{{Stage: "parse", Text: "IPv4 TCP"}, {Stage: "choose", Text: "1 of 3"}},
		Verdict: "forward", Reason: "new-flow", Help: "First packet of a flow; a backend was chosen",
		Backend: "10.244.1.11:8080", Pod: "default/web-1", Service: "default/web", Whose: "everybody at the ClusterIP, internalTrafficPolicy Cluster",
		Eligible: &api.Choice{Tier: "all", Endpoints: slices.Repeat([]api.Endpoint{endpoint}, 23), Notes: []string{"zone-hints-incomplete"},
			Excluded: []api.Exclusion{{Endpoint: api.Endpoint{Address: "fd00::7", Port: 9090, Pod: "default/web-7", Node: "n2"}, Reason: "not-ready"}}},
		Live: []api.Flow{webFlow},
	}
)

// answers are what the pretended agent says.
var answers = map[string]any{
	api.PathServices: api.List[api.Service]{Items: []api.Service{{
		Namespace: "default", Name: "web", InternalPolicy: "Cluster", ExternalPolicy: "Local", HealthPort: 32002,
		Ports: []api.ServicePort{{
			Name: "http", Protocol: "TCP", Port: 80,
			Frontends: []api.Frontend{{Kind: "ClusterIP", Address: "10.96.0.10", Port: 80, Served: true}, {Kind: "ClusterIP", Address: "fd00:10:96::10", Port: 80, Served: true},
				{Kind: "NodePort", Address: "172.30.0.11", Port: 30080}},
			Families: []api.Family{
				{Family: "IPv4", Internal: api.Choice{Tier: "all", Endpoints: []api.Endpoint{endpoint}, Excluded: []api.Exclusion{{Endpoint: endpoint, Reason: "not ready"}}}},
				{Family: "IPv6", Internal: api.Choice{Tier: "none"}, External: api.Choice{Tier: "local", Excluded: []api.Exclusion{
					{Endpoint: endpoint, Reason: "not-local"}, {Endpoint: endpoint, Reason: "not-ready"}, {Endpoint: endpoint, Reason: "not-local"}}}},
			},
		}},
	}}},
	api.PathBackends: api.List[api.Backend]{Items: []api.Backend{{
		Namespace: "default", Service: "web", Port: "http", Protocol: "TCP", Address: "10.244.1.11", TargetPort: 8080,
		Node: "n1", Pod: "default/web-1", Used: true, Flows: 12, Outside: &api.Use{Why: "not-local"},
	}}},
	api.PathFlows: api.List[api.Flow]{Items: []api.Flow{webFlow}, Truncated: true},
	api.PathLane: api.Lane{
		On: true, Flows: 9263, Installed: 9260, Open: 12, OpenLane: 9, Hits: api.Amount{Packets: 1820455, Bytes: 2711844910},
		Punts: []api.Punt{{Cause: "miss", Help: "No flow has the packet", Amount: api.Amount{Packets: 17, Bytes: 1184}}, {Cause: "torn"}},
		Drops: []api.Drop{{Reason: "spoofed-source", Where: "kernel", Packets: 3}},
	},
	api.PathDrops:    api.List[api.Drop]{Items: []api.Drop{{Reason: "unknown-port", Class: "answer", Where: "go", Packets: 7, Bytes: 420, Help: "The VIP has no such port"}}},
	api.PathPorts:    api.List[api.Port]{Items: []api.Port{{ID: 2, Kind: "pod", Device: "veth-web-1", MTU: 1500, Addresses: []string{"10.244.1.11", "fd00:10:244:1::11"}, PeerMAC: "02:00:00:00:00:01"}}},
	api.PathProblems: api.List[api.Problem]{},
	api.PathExplain:  explained,
}

// agent starts a pretended agent and returns its state directory.
func agent(t *testing.T) string { return agentThat(t, answers) }

// agentThat is an agent that says other things.
func agentThat(t *testing.T, said map[string]any) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lace-cli-") // a short path: socket names are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("from") == "nobody" {
			w.WriteHeader(http.StatusNotFound)
			json.NewEncoder(w).Encode(api.Error{Message: "no pod nobody on this node"})
			return
		}
		if strings.HasSuffix(r.URL.Query().Get("to"), "/icmp") {
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(api.Error{Message: "to: protocol icmp: say tcp, udp or sctp"})
			return
		}
		if q := r.URL.Query(); q.Get("limit") == "7" {
			list := api.List[api.Flow]{}
			if q.Get("open") == "true" {
				list.Closed = 9251
			}
			json.NewEncoder(w).Encode(list)
			return
		}
		json.NewEncoder(w).Encode(said[r.URL.Path])
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return dir
}

// Each command line ends with the exit code, the output and the message that it deserves.
func TestCommandLines(t *testing.T) {
	dir := agent(t)
	cases := []struct {
		name string
		args []string
		code int
		out  []string // parts of what programs and people read
		errs string   // part of the message; empty: there must be none
	}{
		{"no command at all shows the help", nil, 0, []string{"Available Commands", "explain"}, ""},
		{"services are listed by port, families side by side", []string{"get", "services"}, 0,
			[]string{"NAMESPACE", "http:80/TCP", "10.96.0.10,fd00:10:96::10", "1/2,0/0", "all,none"}, ""},
		{"wide adds policies", []string{"get", "services", "-o", "wide"}, 0, []string{"INTERNAL", "Cluster", "Local"}, ""},
		{"wide says where balancers ask", []string{"get", "services", "-o", "wide"}, 0, []string{"HEALTH-PORT", "32002"}, ""},
		{"wide names addresses that are not served, with their own port", []string{"get", "svc", "-o", "wide"}, 0, []string{"NOT-SERVED", "NodePort 172.30.0.11:30080"}, ""},
		{"wide names the eligible endpoints, and counts the others by reason", []string{"get", "services", "-o", "wide"}, 0,
			[]string{"ELIGIBLE", "10.244.1.11:8080,-", "1 not ready,-", "OUTSIDE-OUT", "-,0 local", "-,2 not-local 1 not-ready"}, ""},
		{"wide says which endpoints clients outside get, or why not", []string{"get", "backends", "-o", "wide"}, 0, []string{"OUTSIDE", "not-local"}, ""},
		{"explain tells the eligible endpoints, and why the others are not", []string{"explain", "--from", "shopper", "--to", "10.96.0.10:80/tcp"}, 0,
			[]string{"endpoints of default/web for everybody at the ClusterIP, internalTrafficPolicy Cluster: 23 of 24, chosen by all (zone-hints-incomplete)",
				"WHY-NOT", "[fd00::7]:9090", "not-ready", "and 3 more that are eligible, 0 more that are not"}, ""},
		{"one Service", []string{"get", "services", "web"}, 0, []string{"http:80/TCP"}, ""},
		{"one Service, as kubectl says it", []string{"get", "svc", "-n", "default", "web"}, 0, []string{"http:80/TCP"}, ""},
		{"one Service and another namespace", []string{"get", "services", "default/web", "-n", "shop"}, 2, nil, "leave one of the two out"},
		{"a Service that is not there", []string{"get", "services", "wep"}, 1, nil, "no Service wep: lace get services lists all"},
		{"Services of a namespace that has none", []string{"get", "services", "-n", "shop"}, 1, nil, "no Service in namespace shop"},
		{"backends of a namespace", []string{"get", "backends", "-n", "default"}, 0, []string{"default/web-1"}, ""},
		{"backends of one Service", []string{"get", "backends", "default/web"}, 0, []string{"default/web-1"}, ""},
		{"backends of a Service that has none", []string{"get", "backends", "wep"}, 1, nil, "no Service wep has endpoints: see lace get services"},
		{"closed flows are left out and counted", []string{"get", "flows", "--limit", "7"}, 0, nil, "9251 closed flows are not shown: --all lists them"},
		{"all flows", []string{"get", "flows", "--all", "--limit", "7"}, 0, nil, "No flows."},
		{"programs get the agent's own fields", []string{"get", "services", "-o", "json"}, 0, []string{`"internalTrafficPolicy": "Cluster"`}, ""},
		{"YAML has the same fields", []string{"get", "services", "-o", "yaml"}, 0, []string{"internalTrafficPolicy: Cluster"}, ""},
		{"backends", []string{"get", "backends"}, 0, []string{"default/web-1", "8080", "12", "true"}, ""},
		{"flows, and a word that there are more", []string{"get", "flows"}, 0, []string{"10.244.1.13:40000", "established", "1.3s"}, "more flows than these 1"},
		{"drops", []string{"get", "drops"}, 0, []string{"unknown-port", "7", "420"}, ""},
		{"drops with their meaning", []string{"get", "drops", "-o", "wide"}, 0, []string{"The VIP has no such port"}, ""},
		{"the lane, in a sentence and counts", []string{"get", "lane"}, 0, []string{"carries 9 of 12 open connections (9260 of 9263 registered", "CAUSE", "1820455", "punt  miss"}, ""},
		{"the lane with meanings", []string{"get", "lane", "-o", "wide"}, 0, []string{"No flow has the packet"}, ""},
		{"the lane for programs", []string{"get", "lane", "-o", "json"}, 0, []string{`"installed": 9260`, `"cause": "torn"`}, ""},
		{"ports", []string{"get", "ports"}, 0, []string{"veth-web-1", "10.244.1.11,fd00:10:244:1::11"}, ""},
		{"an empty list is no error", []string{"get", "problems"}, 0, nil, "No problems."},
		{"an empty list for programs is a list", []string{"get", "problems", "-o", "json"}, 0, []string{`"items"`}, ""},
		{"explain tells steps, verdict and live flows", []string{"explain", "--from", "shopper", "--to", "10.96.0.10:80/tcp"}, 0,
			[]string{"generation 9", "choose", "1 of 3", "forward: new-flow.", "default/web-1 10.244.1.11:8080", "keep their backend", "10.244.1.13:40000"}, ""},
		{"explain for programs", []string{"explain", "--from", "shopper", "--to", "10.96.0.10:80/tcp", "-o", "json"}, 0, []string{`"reason": "new-flow"`}, ""},
		{"a pod that the node does not have is a failure", []string{"explain", "--from", "nobody", "--to", "10.96.0.10:80/tcp"}, 1, nil, "no pod nobody"},
		{"a destination that makes no sense is a mistake", []string{"explain", "--from", "shopper", "--to", "1.2.3.4/icmp"}, 2, nil, "say tcp, udp or sctp"},
		{"explain without destination is a mistake", []string{"explain", "--from", "shopper"}, 2, nil, `"to" not set`},
		{"an unknown command is a mistake", []string{"got"}, 2, nil, "no such command: lace got"},
		{"an unknown list is a mistake", []string{"get", "pods"}, 2, nil, "no such command: lace get pods"},
		{"an unknown format names the known ones", []string{"get", "ports", "-o", "xml"}, 2, nil, "table, wide, json, yaml"},
		{"an unknown flag is a mistake", []string{"get", "ports", "--colour"}, 2, nil, "--colour"},
		{"a limit out of range is a mistake", []string{"get", "flows", "--limit", "0"}, 2, nil, "1 to 100000"},
		{"a word too many is a mistake", []string{"version", "now"}, 2, nil, `"now"`},
		{"the version as the other commands say it", []string{"--version"}, 0, []string{version + "\n"}, ""},
		{"version", []string{"version", "-o", "json"}, 0, []string{`"snapshotLayout": 2`}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			args := c.args
			if len(args) > 0 && (args[0] == "get" || args[0] == "explain") {
				args = append(args, "--state-dir", dir)
			}
			var out, errs strings.Builder
			if code := run(t.Context(), args, &out, &errs); code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, errs.String())
			}
			for _, part := range c.out {
				if !strings.Contains(out.String(), part) {
					t.Errorf("output has no %q:\n%s", part, out.String())
				}
			}
			if c.errs == "" && errs.Len() > 0 || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("message %q, want one with %q", errs.String(), c.errs)
			}
		})
	}
}

// Without an agent, the message says where it was looked for and what to do, and the exit
// code is that of a failure.
func TestNoAgent(t *testing.T) {
	var out, errs strings.Builder
	code := run(t.Context(), []string{"get", "services", "--state-dir", "/nowhere"}, &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "/nowhere/agent.sock") || !strings.Contains(errs.String(), "lace-agent") {
		t.Errorf("exit code %d, message %q", code, errs.String())
	}
}

// check works on any machine, and its exit code is that of its worst finding.
func TestCheckRunsAnywhere(t *testing.T) {
	dir := t.TempDir()
	var out, errs strings.Builder
	code := run(t.Context(), []string{"check", "--state-dir", dir, "--bpffs", dir, "-o", "json"}, &out, &errs)
	var list api.List[struct{ Verdict, Check, Found, Do string }]
	if err := json.Unmarshal([]byte(out.String()), &list); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	found := false
	for _, f := range list.Items {
		found = found || f.Check == "bpf file system" && f.Verdict == "fail" && strings.Contains(f.Do, dir)
	}
	if code != 1 || !found || errs.Len() > 0 {
		t.Errorf("exit code %d, message %q, findings %+v; want a failure for the folder that is no BPF file system", code, errs.String(), list.Items)
	}
	out.Reset()
	run(t.Context(), []string{"check", "--state-dir", dir, "--bpffs", dir}, &out, &errs)
	if !strings.Contains(out.String(), "→ mount -t bpf bpf "+dir) || !strings.Contains(out.String(), "\nLace cannot run here yet: ") {
		t.Errorf("no advice, or no outcome, in\n%s", out.String())
	}
}

// told is what a command line writes, asked of an agent that says one thing.
func told(t *testing.T, said map[string]any, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), append(args, "--state-dir", agentThat(t, said)), &o, &e)
	return code, o.String(), e.String()
}

// Addresses that are not served do not stand beside those that are.
func TestServedAddressesOnly(t *testing.T) {
	_, out, _ := told(t, answers, "get", "services")
	if strings.Contains(out, "172.30.0.11") || !strings.Contains(out, "10.96.0.10,fd00:10:96::10 ") {
		t.Errorf("want the served addresses alone:\n%s", out)
	}
}

// Without a fast path, the first line of an explanation says so, and the verdict is said
// once.
func TestExplainSaysThatTheFastPathIsDown(t *testing.T) {
	e := explained
	e.FastpathDown, e.Verdict, e.Reason, e.Help, e.Backend = "no sign of life", "drop", "no-worker", "No socket", ""
	e.Steps = append(e.Steps[:2:2], api.Step{Stage: "verdict", Text: "forward, reason new-flow"})
	e.Notes = []string{"start it"}
	code, out, _ := told(t, map[string]any{api.PathExplain: e}, "explain", "--from", "shopper", "--to", "10.96.0.10:80/tcp")
	if code != 0 || !strings.HasPrefix(out, "DOWN: no sign of life\n") {
		t.Errorf("exit code %d, output\n%s", code, out)
	}
	if strings.Contains(out, "forward") || strings.Count(out, "no-worker") != 1 || !strings.Contains(out, "note: start it\n") {
		t.Errorf("want one verdict, that of no fast path:\n%s", out)
	}
}

// A lane whose connections cannot be read is a failure that shows what can be read; drops
// have a list of their own.
func TestLaneThatCannotBeRead(t *testing.T) {
	code, out, errs := told(t, map[string]any{api.PathLane: api.Lane{Message: "no flow table"}}, "get", "lane")
	if code != 1 || !strings.Contains(errs, "no flow table") || !strings.Contains(out, "hit") {
		t.Errorf("exit code %d, message %q, output\n%s", code, errs, out)
	}
	if _, out, _ := told(t, answers, "get", "lane"); strings.Contains(out, "spoofed-source") {
		t.Errorf("drops are repeated:\n%s", out)
	}
}

// Answers of a simulated node come with a line that says so.
func TestSimulatedNode(t *testing.T) {
	said := map[string]any{
		api.PathStatus: api.Status{Node: "n1", Simulated: true}, api.PathExplain: explained,
		api.PathDrops: answers[api.PathDrops], api.PathServices: answers[api.PathServices], api.PathLane: answers[api.PathLane],
	}
	for _, args := range [][]string{{"get", "drops"}, {"get", "services"}, {"get", "lane"}, {"explain", "--from", "shopper", "--to", "10.96.0.10:80/tcp"}} {
		if _, _, errs := told(t, said, args...); !strings.HasPrefix(errs, "SIMULATED: node n1") {
			t.Errorf("%v: message %q", args, errs)
		}
	}
}

// Housekeeping of the kernel is not left looking like lost traffic.
func TestForeignFramesAreToldFromTraffic(t *testing.T) {
	said := map[string]any{api.PathDrops: api.List[api.Drop]{Items: []api.Drop{{Reason: "foreign-frame", Class: "drop", Packets: 5}}}}
	if _, _, errs := told(t, said, "get", "drops"); !strings.Contains(errs, "foreign-frame: no packet to a Service") {
		t.Errorf("message %q", errs)
	}
}

// TestBeforeAnythingIsPublished lists are not empty but not there yet, and all of them say so
// the same way; Problems are there before.
func TestBeforeAnythingIsPublished(t *testing.T) {
	nothing := map[string]any{
		api.PathServices: api.List[api.Service]{}, api.PathBackends: api.List[api.Backend]{}, api.PathPorts: api.List[api.Port]{},
		api.PathProblems: api.List[api.Problem]{}, api.PathStatus: api.Status{Waiting: "the source"},
	}
	for _, what := range []string{"services", "backends", "ports"} {
		if code, out, errs := told(t, nothing, "get", what); code != 1 || !strings.Contains(errs, "nothing has been published yet: lace get status") {
			t.Errorf("get %s: exit code %d, %q, %q", what, code, out, errs)
		}
	}
	if code, _, errs := told(t, nothing, "get", "problems"); code != 0 || !strings.Contains(errs, "No problems.") {
		t.Errorf("get problems: exit code %d, %q", code, errs)
	}
}

// TestNotServedNamesTheHolder, and a node port is never shown as if the whole address were the
// Service's.
func TestNotServedNamesTheHolder(t *testing.T) {
	s := servicePort{port: api.ServicePort{Port: 80, Frontends: []api.Frontend{
		{Kind: "ClusterIP", Address: "10.96.0.10", Port: 80, Holder: "Service demo/web"},
		{Kind: "NodePort", Address: "192.168.7.11", Port: 80, Served: true},
	}}}
	if got := s.notServed(); got != "ClusterIP 10.96.0.10 (of Service demo/web)" {
		t.Errorf("not served: %q", got)
	}
	if got := s.addresses(); got != "192.168.7.11:80" {
		t.Errorf("addresses: %q", got)
	}
}
