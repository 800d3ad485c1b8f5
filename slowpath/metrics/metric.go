package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/reason"
)

// send hands over one value with the values of the metric's labels.
type send func(v float64, labels ...string)

// metric is one name, and how its values come out of a Reading.
type metric struct {
	name   string
	help   string
	kind   prometheus.ValueType
	labels []string
	emit   func(r *Reading, to send)
}

const (
	count = prometheus.CounterValue
	gauge = prometheus.GaugeValue
)

// table is every metric of Lace's own that is read on scrape.
var table = []metric{
	{"lace_packets_total", "Packets decided by the Go fast path", count, []string{"verdict"}, goPackets},
	{"lace_bytes_total", "Bytes of the packets decided by the Go fast path, Ethernet headers included", count, []string{"verdict"}, goBytes},
	{"lace_decisions_total", "Packets decided by the Go fast path, by the reason for the verdict", count, []string{"reason"}, decisions},
	{"lace_drops_total", "Packets dropped, by the reason and by who dropped them", count, []string{"reason", "where"}, drops},
	{"lace_black_holes", "Flows whose packets are too long for a port and vanish, of those that the workers remember", gauge, []string{"device", "kind"}, blackHoles},
	{"lace_kernel_packets_total", "Packets that met the BPF programs, by what became of them there", count, []string{"action"}, kernelPackets},
	{"lace_kernel_bytes_total", "Bytes of the packets that met the BPF programs, by what became of them there", count, []string{"action"}, kernelBytes},
	{"lace_lane_packets_total", "Packets that the kernel carried without Go", count, nil, lanePackets},
	{"lace_lane_bytes_total", "Bytes of the packets that the kernel carried without Go", count, nil, laneBytes},
	{"lace_lane_punts_total", "Claimed packets that the kernel left to Go, by cause", count, []string{"cause"}, lanePunts},
	{"lace_lane_installed_total", "Flows handed over to the kernel, both directions counted as one", count, nil, ofEvent(counter.Installed)},
	{"lace_flows", "Registered flows, both directions counted as one", gauge, nil, ofGauge(counter.Flows)},
	{"lace_flows_half_open", "Registered TCP flows whose handshake is not complete", gauge, nil, ofGauge(counter.HalfOpen)},
	{"lace_flows_max", "Flows that the flow table can hold", gauge, nil, ofGauge(counter.FlowCapacity)},
	{"lace_flow_creations_total", "Flows registered since the counters began", count, nil, ofReason(reason.NewFlow)},
	{"lace_flow_expirations_total", "Flows removed after their timeout since the counters began", count, nil, ofEvent(counter.Expired)},
	{"lace_flows_restored", "Flows found in the flow table when the fast path started", gauge, nil, ofGauge(counter.Restored)},
	{"lace_flows_repaired", "Torn or half-written flows removed when the fast path started", gauge, nil, ofGauge(counter.RepairedFlows)},
	{"lace_flows_unanswered", "Registered datagram flows that nobody has answered", gauge, nil, ofGauge(counter.Unanswered)},
	{"lace_flows_evicted", "Half-open and unanswered flows that gave way to newer ones of their port since the fast path started", gauge, nil, ofGauge(counter.Evicted)},
	{"lace_alarm", "Whether something is nearly full or a port held back: 1 or 0", gauge, []string{"alarm"}, alarms},
	{"lace_punt_limit", "New flows that a port may ask for in a second while the workers are busy; 0 without a limit", gauge, nil, ofGauge(counter.PuntLimit)},
	{"lace_policed_packets_total", "Packets dropped because their port asked for more than its share, by its device and by what they asked for", count, []string{"device", "ask"}, policed},
	{"lace_ring_full_total", "Frames dropped because a ring was full", count, []string{"port", "ring"}, ringFull},
	{"lace_worker_events_total", "What the workers of the fast path did, by event", count, []string{"event"}, events},
	{"lace_workers", "Workers of the fast path", gauge, nil, workers},
	{"lace_fastpath_up", "Whether the fast path runs: 1 or 0", gauge, nil, up},
	{"lace_fastpath_info", "How the fast path is attached to the kernel", gauge, []string{"xdp_mode", "socket_mode"}, modes},
	{"lace_fastpath_start_time_seconds", "When the fast path began to serve, in seconds since 1970", gauge, nil, started},
	{"lace_fastpath_start_duration_seconds", "Time from the start of the fast path's process until it was ready", gauge, nil, startTook},
	{"lace_fastpath_broken", "Parts of the fast path's upkeep that have failed and are tried again", gauge, nil, ofGauge(counter.Broken)},
	{"lace_repairs_total", "What somebody took away or changed on the node and was put right, since the process that did it began", count, []string{"what"}, repairs},
	{"lace_snapshot_generation", "Generation of the snapshot that the agent published last", gauge, nil, generation},
	{"lace_snapshot_generation_in_use", "Generation of the snapshot that the fast path uses", gauge, nil, ofGauge(counter.Generation)},
	{"lace_snapshot_timestamp_seconds", "When the last snapshot was published, in seconds since 1970", gauge, nil, publishedAt},
	{"lace_snapshot_bytes", "Size of the snapshot that was published last", gauge, nil, snapshotBytes},
	{"lace_snapshot_refusals", "Snapshots that the fast path has refused since it started", gauge, nil, ofGauge(counter.Refused)},
	{"lace_kernel_sync_failures", "Times the BPF maps could not be brought in line since the fast path started", gauge, nil, ofGauge(counter.SyncFailures)},
	{"lace_publish_queued_timestamp_seconds", "When the oldest change came that is not published yet, in seconds since 1970; 0 when none waits", gauge, nil, queued},
	{"lace_objects", "Declared objects that the agent has read, by kind", gauge, []string{"kind"}, objects},
	{"lace_programmed", "What the last snapshot holds, by kind of record", gauge, []string{"kind"}, programmed},
	{"lace_problems", "Things that could not be honoured, by kind of object", gauge, []string{"kind"}, problems},
}
