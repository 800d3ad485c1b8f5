package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/pipeline/matrix"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/xdp"
	"lace-cni.io/lace/xdp/bpf"
)

// abreast is how many cases are played at a time, packet by packet.
const abreast = 64

// TestPacketMatrix plays every case of the packet matrix to a running fast path: packets come
// in by real devices and are caught where they have to arrive. What the kernel is to carry
// it must have carried, and everything is counted by the reason that the case gives.
func TestPacketMatrix(t *testing.T) {
	s := newStage(t)
	all, err := matrix.Load()
	s.must(err)
	generation := uint64(1)
	for _, lane := range []string{"lane-off", "lane-on"} {
		for _, delivery := range []string{"direct", "stack"} {
			generation++
			s.f.publish(s.tables(generation, lane == "lane-on", delivery == "stack"))
			s.f.uses(generation)
			var batch []*act
			for i := range all {
				if c := &all[i]; c.Lane == lane && c.Delivery == delivery {
					batch = append(batch, &act{Case: c})
				}
			}
			t.Run(lane+" "+delivery, func(t *testing.T) { s.run(t, batch) })
		}
	}
}

// act is a case being played.
type act struct {
	*matrix.Case
	at     int
	chosen uint16
}

// stage is the node of the cases, with a fast path that runs on it.
type stage struct {
	*network
	f     *fastpath
	ends  map[string]*tap // where packets arrive, by port: far ends of devices, and the node's own stack
	doors map[string]*tap // where the node's own stack sends, by device
	flows *conntrack.Reader
	bpf   *xdp.CounterReader
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{network: newMuteNetwork(t), f: newFastpath(t, 1), ends: map[string]*tap{}, doors: map[string]*tap{}}
	s.f.start()
	s.f.publish(s.tables(1, false, false))
	s.f.uses(1)
	for name, p := range map[string]*pod{"pod": s.client, "web": s.web, "wire": s.wire} {
		s.in(p, func() { s.ends[name] = s.tap("eth0", p.mac, p.gateway) })
		s.doors[name] = s.tap(p.device, p.gateway, p.mac)
	}
	s.doors["node"] = s.tap("lace0", nil, nil)
	s.ends["node"] = s.listenAtTheStack("lace0", s.client.device, s.web.device, s.wire.device)
	slots, err := mapPin(s.f.config.BPFFS, bpf.LaceMapFlows)
	s.must(err)
	tags, err := mapPin(s.f.config.BPFFS, bpf.LaceMapFlowTags)
	s.must(err)
	t.Cleanup(func() { s.must(errors.Join(unix.Munmap(slots), unix.Munmap(tags))) })
	s.flows, err = conntrack.View(slots, tags)
	s.must(err)
	s.bpf, err = xdp.OpenCounters(s.f.config.BPFFS)
	s.must(err)
	t.Cleanup(func() { s.bpf.Close() })
	return s
}

// mapPin maps all entries of a pinned array to read.
func mapPin(bpffs, name string) ([]byte, error) {
	m, err := ebpf.LoadPinnedMap(filepath.Join(bpffs, "lace", "maps", name), nil)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return unix.Mmap(m.FD(), 0, int(m.MaxEntries())*int(m.ValueSize()), unix.PROT_READ, unix.MAP_SHARED)
}

// tables are those of the cases, on the devices of the stage.
func (s *stage) tables(generation uint64, lane, stack bool) *table.Contents {
	pods := map[string]*pod{"pod": s.client, "web": s.web, "wire": s.wire}
	return matrix.Node{Generation: generation, Lane: lane, Stack: stack, Port: func(name string, p *table.Port) {
		at := pods[name]
		if at == nil {
			p.Ifindex, p.MTU = 0, 0
			return
		}
		p.Ifindex, p.HostMAC = uint32(s.link(at.device).Attrs().Index), [6]byte(at.gateway)
		if name != "wire" {
			p.PeerMAC = [6]byte(at.mac)
		}
		s.must(p.SetDevice(at.device))
	}}.Tables()
}

func (s *stage) run(t *testing.T, all []*act) {
	whole := s.t
	s.t, s.f.t = t, t
	defer func() { s.t, s.f.t = whole, whole }()
	before, carried := s.counts(), s.carried()
	want, lane := map[reason.Reason]uint64{}, uint64(0)
	for _, a := range all {
		for _, step := range a.Steps {
			want[step.Reason]++
			if step.Lane {
				lane++
			}
		}
	}
	for at := 0; at < len(all); at += abreast {
		s.abreast(all[at:min(at+abreast, len(all))])
		if t.Failed() {
			return
		}
	}
	delete(want, reason.NotClaimed) // which the kernel does not count
	s.f.eventually(fmt.Sprintf("every packet is counted by its reason: %v", want), func() bool {
		after, same := s.counts(), true
		for r, n := range want {
			same = same && after[r]-before[r] == n
		}
		return same
	})
	if n := s.carried() - carried; n != lane {
		t.Errorf("the kernel has carried %d packets, want %d", n, lane)
	}
	t.Logf("%d cases, %d packets in the lane; by reason: %v", len(all), lane, want)
}

// counts are all packets so far, Go's and the kernel's, by reason.
func (s *stage) counts() (n [reason.Count]uint64) {
	s.t.Helper()
	kernel, err := s.bpf.Counters()
	s.must(err)
	ours := s.f.totals()
	for r := range n {
		n[r] = kernel.Reasons[r].Packets + ours.Reasons[r].Packets
	}
	return n
}

// carried is how many packets the kernel has forwarded on its own.
func (s *stage) carried() uint64 {
	s.t.Helper()
	c, err := s.bpf.Counters()
	s.must(err)
	return c.Hits().Packets
}

// abreast plays cases side by side, packet by packet, each to its end.
func (s *stage) abreast(acts []*act) {
	s.t.Helper()
	for round := 0; ; round++ {
		var open []*act
		for _, a := range acts {
			if a.at = round; round < len(a.Steps) {
				open = append(open, a)
			}
		}
		if len(open) == 0 {
			return
		}
		var apart []*act
		together := slices.DeleteFunc(open, func(a *act) bool {
			if a.handsOver() {
				apart = append(apart, a)
			}
			return a.handsOver()
		})
		s.exchange(together)
		for _, a := range apart {
			// Of several flows that wait to be handed over some may have to wait longer.
			s.exchange([]*act{a})
		}
		if s.t.Failed() {
			return
		}
	}
}

// exchange plays the packets in turn.
func (s *stage) exchange(acts []*act) {
	s.t.Helper()
	for _, a := range acts {
		if a.Steps[a.at].Lane {
			s.f.eventually("the flow is in the lane: "+a.Cell.String(), func() bool { return s.inLane(a) })
		}
		s.send(a)
	}
	s.catch(acts)
}

// handsOver reports whether the packet in turn is the last before the flow is handed over
// once the worker has nothing else to do.
func (a *act) handsOver() bool {
	step := &a.Steps[a.at]
	return !step.Lane && step.Reason == reason.Established && a.at+1 < len(a.Steps) && a.Steps[a.at+1].Lane
}

func (s *stage) inLane(a *act) bool {
	in := a.Steps[a.at].In.Frame(a.Family, a.chosen, a.Label())
	tuple := conntrack.Tuple{
		Src: packet.AddrFrom(in.Src.Addr()), Dst: packet.AddrFrom(in.Dst.Addr()), SrcPort: in.Src.Port(), DstPort: in.Dst.Port(), Protocol: in.Protocol,
	}
	var f conntrack.Flow
	return s.flows.Lookup(&tuple, &f) && f.Mode == conntrack.ModeLane
}

// send sends the packet in turn from where its sender is.
func (s *stage) send(a *act) {
	s.t.Helper()
	step := &a.Steps[a.at]
	in := step.In
	from := s.ends[step.Met]
	switch fromNode := in.Src.Place == "node"; {
	case step.Met == "node", step.Egress && fromNode:
		from = s.doors[step.Met]
	case step.Egress: // the node routes it first, and takes a hop
		from = s.ends[matrix.Way(in.Src.Place)]
		in.TTL++
	}
	f := in.Frame(a.Family, a.chosen, a.Label())
	f.SrcMAC, f.DstMAC = from.mac, from.far
	from.send(s.t, f.Bytes())
}

// catch waits until every packet has arrived as what the case says, and nothing else.
func (s *stage) catch(open []*act) {
	s.t.Helper()
	waiting := map[string][]*act{}
	n := 0
	for _, a := range open {
		if step := &a.Steps[a.at]; step.Verdict != "drop" {
			place := matrix.Way(step.Out.Dst.Place)
			waiting[place] = append(waiting[place], a)
			n++
		}
	}
	var strange []string
	for deadline := time.Now().Add(20 * time.Second); n > 0 && time.Now().Before(deadline); s.await() {
		for place, end := range s.ends {
			for b := end.receive(s.t); b != nil; b = end.receive(s.t) {
				at, why := s.whose(waiting[place], b)
				if at < 0 {
					strange = append(strange, place+": "+why)
					continue
				}
				waiting[place] = append(waiting[place][:at:at], waiting[place][at+1:]...)
				n--
			}
		}
	}
	for place, acts := range waiting {
		for _, a := range acts {
			s.t.Errorf("%s\n%s, packet %d: did not arrive at %s", a.Sentence, a.Cell, a.at+1, place)
		}
	}
	for _, what := range strange {
		s.t.Errorf("arrived, and nobody has expected it: %s", what)
	}
}

// await waits for a moment, or until a packet arrives.
func (s *stage) await() {
	var fds []unix.PollFd
	for _, end := range s.ends {
		fds = append(fds, unix.PollFd{Fd: int32(end.fd), Events: unix.POLLIN})
	}
	if _, err := unix.Poll(fds, 10); err != nil && err != unix.EINTR {
		s.must(err)
	}
}

// whose finds the case to which a frame belongs.
func (s *stage) whose(acts []*act, b []byte) (at int, why string) {
	why = fmt.Sprintf("%x", b)
	if got, err := frame.Decode(b); err == nil {
		why = fmt.Sprintf("protocol %d %s > %s ttl %d %x", got.Protocol, got.Src, got.Dst, got.TTL, got.Payload)
	}
	for i, a := range acts {
		step := &a.Steps[a.at]
		out := step.Out
		if step.How == "stack" && step.Verdict == "forward" && out.Dst.Place != "node" {
			out.TTL-- // the stack routes it
		}
		diff := out.Differs(b, a.Family, &a.chosen, a.Label())
		if diff == "" {
			return i, ""
		}
		if len(acts) == 1 {
			why += "\n" + a.Cell.String() + "\n" + diff
		}
	}
	return -1, why
}
