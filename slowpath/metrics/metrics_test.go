package metrics

import (
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/police"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/xdp"
)

// full is a Reading in which every metric has a value.
func full() Reading {
	totals := &counter.Totals{Workers: 2}
	totals.Reasons[reason.NewFlow] = counter.Tally{Packets: 10, Bytes: 600}
	totals.Reasons[reason.Established] = counter.Tally{Packets: 90, Bytes: 90_000}
	totals.Reasons[reason.NoEndpoints] = counter.Tally{Packets: 3, Bytes: 180}
	totals.Reasons[reason.NotClaimed] = counter.Tally{Packets: 1, Bytes: 60}
	totals.Reasons[reason.RingFull] = counter.Tally{Packets: 7, Bytes: 420}
	totals.Reasons[reason.Fragment] = counter.Tally{Packets: 2, Bytes: 3000}
	totals.Gauges[counter.Generation] = 9
	totals.Gauges[counter.Flows] = 55
	totals.Gauges[counter.FlowCapacity] = 1000
	totals.Gauges[counter.TrunkDropped], totals.Gauges[counter.ReturnDropped] = 12, 13
	totals.Gauges[counter.StartTook] = 150_000_000
	totals.Gauges[counter.Started] = 1_700_000_000_500_000_000
	totals.Events[counter.Expired] = 4
	totals.Events[counter.Installed] = 8
	kernel := &xdp.Counters{Claimed: xdp.Count{Packets: 120, Bytes: 95_000}, Punted: xdp.Count{Packets: 114, Bytes: 94_000}}
	kernel.Reasons[reason.SpoofedSource] = xdp.Count{Packets: 6, Bytes: 400}
	kernel.Reasons[reason.NotClaimed] = xdp.Count{Packets: 5000, Bytes: 1 << 20}
	kernel.Reasons[reason.Established] = xdp.Count{Packets: 700, Bytes: 70_000}
	kernel.Reasons[reason.Reply] = xdp.Count{Packets: 300, Bytes: 900_000}
	kernel.Punts[xdp.CauseMiss] = xdp.Count{Packets: 114, Bytes: 94_000}
	kernel.Policed = []xdp.Policed{{Port: 7, Packets: [police.Asks]uint64{police.New: 40}}, {Port: 8, Packets: [police.Asks]uint64{police.Again: 2}}}
	totals.Gauges[counter.RaisedAlarms] = 1 << counter.AlarmPoliced
	return Reading{
		Devices:  map[uint16]string{7: "shopper"},
		Holes:    []blackhole.Hole{{Kind: blackhole.Untold, Out: 7}, {Kind: blackhole.Untold, Out: 7}, {Kind: blackhole.Unheeded, Out: 9}},
		Fastpath: Fastpath{Alive: true, XDPMode: "native", SocketMode: "copy"},
		Go:       totals,
		Kernel:   kernel,
		Published: Published{
			Generation: 11, At: time.Unix(1_700_000_100, 0), Bytes: 4096,
			Objects: map[string]int{"Service": 3}, Problems: map[string]int{"Port": 1},
			Programmed: map[string]int{"frontends": 6},
		},
		Repairs: map[string]uint64{"program": 2, "route": 1},
	}
}

func TestPrometheusConventions(t *testing.T) {
	faults, err := testutil.GatherAndLint(New("test", full).registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if strings.HasPrefix(f.Metric, "kubeproxy_") {
			continue // a name of kube-proxy's, kept with its faults
		}
		t.Errorf("%s: %s", f.Metric, f.Text)
	}
	for _, m := range table {
		if strings.HasSuffix(m.help, ".") || !strings.HasPrefix(m.name, "lace_") {
			t.Errorf("%s: want the prefix lace_ and a help without a full stop", m.name)
		}
	}
}

func TestValues(t *testing.T) {
	cases := []struct{ series, value string }{
		{`lace_packets_total{verdict="forward"}`, "100"},
		{`lace_black_holes{device="shopper",kind="untold"}`, "2"},
		{`lace_black_holes{device="port 9",kind="unheeded"}`, "1"},
		{`lace_fastpath_start_duration_seconds`, "0.15"},
		{`lace_fastpath_broken`, "0"},
		{`lace_repairs_total{what="program"}`, "2"},
		{`lace_repairs_total{what="route"}`, "1"},
		{`lace_packets_total{verdict="answer"}`, "3"},
		{`lace_packets_total{verdict="pass"}`, "1"},
		{`lace_packets_total{verdict="drop"}`, "9"},
		{`lace_bytes_total{verdict="forward"}`, "90600"},
		{`lace_decisions_total{reason="established"}`, "90"},
		{`lace_drops_total{reason="fragment",where="go"}`, "2"},
		{`lace_drops_total{reason="fragment",where="kernel"}`, "0"},
		{`lace_drops_total{reason="spoofed-source",where="kernel"}`, "6"},
		{`lace_kernel_packets_total{action="passed"}`, "5000"},
		{`lace_kernel_packets_total{action="claimed"}`, "120"},
		{`lace_kernel_packets_total{action="dropped"}`, "6"},
		{`lace_kernel_bytes_total{action="punted"}`, "94000"},
		{`lace_lane_packets_total`, "1000"},
		{`lace_lane_bytes_total`, "970000"},
		{`lace_lane_punts_total{cause="miss"}`, "114"},
		{`lace_lane_punts_total{cause="header"}`, "0"},
		{`lace_lane_installed_total`, "8"},
		{`lace_kernel_packets_total{action="lane"}`, "1000"},
		{`lace_flows`, "55"},
		{`lace_flows_max`, "1000"},
		{`lace_flow_creations_total`, "10"},
		{`lace_flow_expirations_total`, "4"},
		{`lace_ring_full_total{port="trunk",ring="tx"}`, "7"},
		{`lace_ring_full_total{port="trunk",ring="to-go"}`, "12"},
		{`lace_ring_full_total{port="trunk",ring="from-go"}`, "13"},
		{`lace_worker_events_total{event="expired"}`, "4"},
		{`lace_workers`, "2"},
		{`lace_fastpath_up`, "1"},
		{`lace_fastpath_info{socket_mode="copy",xdp_mode="native"}`, "1"},
		{`lace_fastpath_start_time_seconds`, "1.7000000005e+09"},
		{`lace_snapshot_generation`, "11"},
		{`lace_snapshot_generation_in_use`, "9"},
		{`lace_snapshot_timestamp_seconds`, "1.7000001e+09"},
		{`lace_publish_queued_timestamp_seconds`, "0"},
		{`lace_objects{kind="Service"}`, "3"},
		{`lace_problems{kind="Port"}`, "1"},
		{`lace_programmed{kind="frontends"}`, "6"},
		{`lace_network_programming_duration_seconds_bucket{le="0.01"}`, "1"},
		{`lace_network_programming_duration_seconds_bucket{le="0.005"}`, "0"},
		{`lace_publish_duration_seconds_count`, "1"},
	}
	m := New("test", full)
	m.Programmed(8 * time.Millisecond)
	m.PublishTook(2 * time.Millisecond)
	got := scrape(t, m)
	for _, c := range cases {
		if got[c.series] != c.value {
			t.Errorf("%s is %q, want %q", c.series, got[c.series], c.value)
		}
	}
}

func scrape(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		if i := strings.LastIndexByte(strings.TrimSpace(line), ' '); i > 0 && line[0] != '#' {
			out[line[:i]] = strings.TrimSpace(line[i+1:])
		}
	}
	return out
}

func TestWhatCannotBeReadIsLeftOut(t *testing.T) {
	got := scrape(t, New("test", func() Reading { return Reading{} }))
	if got["lace_fastpath_up"] != "0" {
		t.Errorf("lace_fastpath_up is %q, want 0", got["lace_fastpath_up"])
	}
	for series := range got {
		for _, absent := range []string{"lace_flows", "lace_packets", "lace_drops", "lace_kernel", "lace_lane", "lace_worker"} {
			if strings.HasPrefix(series, absent) {
				t.Errorf("%s is shown although nothing could be read", series)
			}
		}
	}
}

func TestAScrapeIsOneReading(t *testing.T) {
	readings := 0
	m := New("test", func() Reading { readings++; return full() })
	scrape(t, m)
	if readings != 1 {
		t.Errorf("%d readings, want 1: values of one scrape belong together", readings)
	}
}

// shape is what page and code have to say alike about a metric.
type shape struct{ kind, labels string }

func TestThePageListsEveryMetricAndNoOther(t *testing.T) {
	const page = "../../docs/reference/metrics.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	described := make(map[string]shape)
	row := regexp.MustCompile("(?m)^\\| `((?:lace|kubeproxy)_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*) ?\\|")
	for _, m := range row.FindAllStringSubmatch(string(b), -1) {
		described[m[1]] = shape{m[2], strings.ReplaceAll(strings.TrimSpace(m[3]), "`", "")}
	}
	m := New("test", full)
	m.Programmed(time.Second)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]shape)
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "lace_") || strings.HasPrefix(f.GetName(), "kubeproxy_") {
			shown[f.GetName()] = shape{kind: strings.ToLower(f.GetType().String()), labels: described[f.GetName()].labels}
		}
	}
	for _, one := range onScrape() { // labels in the order of the code
		s := shown[one.name]
		s.labels = strings.Join(one.labels, ", ")
		shown[one.name] = s
	}
	if diff := cmp.Diff(described, shown, cmp.AllowUnexported(shape{})); diff != "" {
		t.Errorf("%s against the code (-page +code):\n%s", page, diff)
	}
}

func TestEveryWordOfALabelIsExplained(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"passed", "claimed", "punted", "injected", "lane", "dropped", "go", "kernel"}
	for r := range counter.Repairs {
		words = append(words, r.String())
	}
	for e := range counter.Events {
		words = append(words, e.String())
	}
	for cause := xdp.Cause(1); int(cause) < xdp.Causes; cause++ {
		words = append(words, cause.String())
	}
	for kind := blackhole.Untold; kind < blackhole.Kinds; kind++ {
		words = append(words, kind.String())
	}
	for _, c := range classes {
		words = append(words, c.String())
	}
	for _, w := range words {
		if !strings.Contains(string(b), "`"+w+"`") {
			t.Errorf("docs/reference/metrics.md does not explain the label value %q", w)
		}
	}
}

// A port that was held back is named by its device, and by its number when it has gone.
func TestPolicedPortsAreNamed(t *testing.T) {
	got := map[string]float64{}
	r := full()
	policed(&r, func(v float64, labels ...string) { got[strings.Join(labels, " ")] = v })
	want := map[string]float64{"shopper new": 40, "shopper flow": 0, "shopper again": 0, "port 8 new": 0, "port 8 flow": 0, "port 8 again": 2}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	clear(got)
	alarms(&r, func(v float64, labels ...string) { got[labels[0]] = v })
	if got["policed"] != 1 || got["flow-table"] != 0 || len(got) != int(counter.Alarms) {
		t.Errorf("alarms %v", got)
	}
}
