package dataplane

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/pipeline/matrix"
	"lace-cni.io/lace/fastpath/reason"
)

// TestHostileFrames: pods and the wire send what they like; none of it gets anywhere, and
// afterwards everything works as if nothing had been.
func TestHostileFrames(t *testing.T) {
	s := newStage(t)
	for name, attack := range map[string]func(from string, end *tap) [][]byte{
		"frames that look like those of the trunk": forged,
		"frames of every length":                   everyLength,
		"garbage":                                  garbage,
	} {
		for _, from := range []string{"pod", "web", "wire"} {
			t.Run(name+" from "+from, func(t *testing.T) {
				for _, f := range attack(from, s.ends[from]) {
					if _, err := unix.Write(s.ends[from].fd, f); err != nil && err != unix.EMSGSIZE && err != unix.EINVAL && err != unix.ENOBUFS {
						t.Fatalf("sending %d bytes: %v", len(f), err)
					}
				}
				s.silence(t)
			})
		}
	}
	all, err := matrix.Load()
	s.must(err)
	var batch []*act
	for i := range all {
		if c := &all[i]; c.Lane == "lane-off" && c.Delivery == "direct" && len(batch) < abreast {
			batch = append(batch, &act{Case: c})
		}
	}
	s.run(t, batch)
}

// silence checks that nothing has arrived anywhere, when everything sent has been seen.
func (s *stage) silence(t *testing.T) {
	t.Helper()
	s.t, s.f.t = t, t
	s.f.settled()
	for place, end := range s.ends {
		if b := end.receive(t); b != nil {
			t.Errorf("arrived at %s: %x", place, b)
		}
	}
}

// Addresses that nobody has.
const nowhere, nowhere6 = "198.51.100.1", "2001:db8::1"

// forged are frames with every Ethernet source that has a meaning on the trunk, around
// packets to VIPs in others' names.
func forged(from string, end *tap) (all [][]byte) {
	for _, kind := range []byte{0x50, 0x49} {
		for what := range 256 {
			for _, port := range []byte{0, 1, 2, 3, 4, 99} {
				for _, f := range []frame.Frame{
					frame.UDP(nowhere+":1", "10.96.0.10:80", "forged"),
					frame.UDP("["+nowhere6+"]:1", "[fd00:10:96::10]:80", "forged"),
				} {
					if from == "wire" { // whose clients may have any address but those of this node
						f.Src = netip.AddrPortFrom(matrix.Addr("pod", map[bool]string{true: "v4", false: "v6"}[f.Src.Addr().Is4()]), 1)
					}
					f.DstMAC, f.SrcMAC = end.far, [6]byte{0x02, 0x4c, kind, byte(what), 0, port}
					all = append(all, f.Bytes())
				}
			}
		}
	}
	return all
}

// everyLength are beginnings of a packet in another's name, up to 2,048 bytes.
func everyLength(from string, end *tap) (all [][]byte) {
	source := map[string]string{"pod": "web", "web": "pod", "wire": "node"}[from]
	for _, family := range []string{"v4", "v6"} {
		at := func(place string) string { return netip.AddrPortFrom(matrix.Addr(place, family), 80).String() }
		f := frame.TCP(at(source), at("cluster"), packet.FlagSYN, string(make([]byte, 2048)))
		f.SrcMAC, f.DstMAC = end.mac, end.far
		b := f.Bytes()
		for n := range 2049 {
			all = append(all, b[:n])
		}
	}
	return all
}

// garbage is what has an Ethernet header and no sense.
func garbage(_ string, end *tap) (all [][]byte) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 3000 {
		b := make([]byte, 14+rng.IntN(1500))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		copy(b, end.far[:])
		copy(b[6:], end.mac[:])
		if rng.IntN(2) == 0 {
			b[12], b[13] = 0x08, 0x00
		} else {
			b[12], b[13] = 0x86, 0xdd
		}
		b[14] = b[14]&0x0f | [...]byte{0x40, 0x60, 0xf0}[rng.IntN(3)]
		all = append(all, b)
	}
	return all
}

// TestSpoofedSources: from each port, a packet to a VIP in the name of everybody who does not
// live there is dropped, and counted as that.
func TestSpoofedSources(t *testing.T) {
	s := newStage(t)
	before := s.counts()
	sent := uint64(0)
	for from, names := range map[string][]string{
		"pod": {"web", "node", "outside", "remote", "cluster", "external"}, "web": {"pod", "node", "outside", "remote", "cluster"},
		"wire": {"pod", "web", "node"}, "node": {"pod", "web", "outside", "remote"},
	} {
		end := s.ends[from]
		if from == "node" {
			end = s.doors["node"]
		}
		for _, name := range names {
			for _, family := range []string{"v4", "v6"} {
				for _, kind := range []string{"SYN", "udp", "sctp"} {
					p := matrix.Packet{Kind: kind, Src: matrix.Endpoint{Place: name, Port: 4000}, Dst: matrix.Endpoint{Place: "cluster", Port: 80}, TTL: 64}
					f := p.Frame(family, 0, 4000)
					f.SrcMAC, f.DstMAC = end.mac, end.far
					if _, err := unix.Write(end.fd, f.Bytes()); err != nil && err != unix.ENOBUFS { // so the node hears of a drop
						t.Fatal(err)
					}
					sent++
				}
			}
		}
	}
	s.f.eventually(fmt.Sprintf("%d packets are counted as spoofed", sent), func() bool {
		return s.counts()[reason.SpoofedSource]-before[reason.SpoofedSource] == sent
	})
	s.silence(t)
}

// TestOutOfWindowReplies: replies whose sequence numbers lie anywhere reach the client with
// the VIP as their source, whoever carries the flow; none bears the backend's.
func TestOutOfWindowReplies(t *testing.T) {
	s := newStage(t)
	rng := rand.New(rand.NewPCG(13, 14))
	for generation, lane := range map[uint64]bool{2: false, 3: true} {
		s.f.publish(s.tables(generation+2, lane, false))
		s.f.uses(generation + 2)
		for _, family := range []string{"v4", "v6"} {
			port := uint16(5000 + generation)
			ends := func(kind, src string, sp uint16, dst string, dp uint16) *matrix.Packet {
				return &matrix.Packet{Kind: kind, Src: matrix.Endpoint{Place: src, Port: sp}, Dst: matrix.Endpoint{Place: dst, Port: dp}, TTL: 64}
			}
			s.pass(t, "pod", ends("SYN", "pod", port, "cluster", 80).Frame(family, 0, port), "web", "pod")
			s.pass(t, "web", ends("SYN+ACK", "web", 8080, "pod", port).Frame(family, 0, port), "pod", "cluster")
			for range 200 {
				f := ends("ACK", "web", 8080, "pod", port).Frame(family, 0, port)
				f.Seq, f.Ack, f.Window = rng.Uint32(), rng.Uint32(), uint16(rng.Uint32())
				s.pass(t, "web", f, "pod", "cluster")
			}
		}
	}
}

// pass sends a frame and waits for what becomes of it, which has to have this source.
func (s *stage) pass(t *testing.T, from string, f frame.Frame, to, source string) {
	t.Helper()
	f.SrcMAC, f.DstMAC = s.ends[from].mac, s.ends[from].far
	s.ends[from].send(t, f.Bytes())
	var b []byte
	s.f.eventually("a packet arrives at "+to, func() bool { b = s.ends[to].receive(t); return b != nil })
	got, err := frame.Decode(b)
	s.must(err)
	s.must(frame.Check(b))
	family := "v4"
	if f.Src.Addr().Is6() {
		family = "v6"
	}
	if got.Src.Addr() != matrix.Addr(source, family) || got.Seq != f.Seq || got.Ack != f.Ack {
		t.Fatalf("%s > %s seq %d has arrived as %s > %s seq %d", f.Src, f.Dst, f.Seq, got.Src, got.Dst, got.Seq)
	}
}

// TestQueues: with one, two and four queues the fast path starts, serves, and says in what
// mode.
func TestQueues(t *testing.T) {
	for _, queues := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(queues), func(t *testing.T) {
			n, f := newNetwork(t), newFastpath(t, queues)
			f.publish(n.contents(1))
			f.start()
			n.serveEcho()
			f.says(fmt.Sprintf("workers=%d xdp=native sockets=copy", queues))
			var s Status
			b, err := os.ReadFile(f.config.path(statusFile))
			n.must(err)
			n.must(json.Unmarshal(b, &s))
			if s.Workers != queues || s.Queues != queues || s.XDPMode == "" || s.SocketMode == "" {
				t.Errorf("fastpath.json says %s", b)
			}
			f.uses(1)
			for range 4 * queues { // so that more than one queue is used
				n.converse(n.client, "tcp", netip.AddrPortFrom(vips[0], toWeb))
				n.converse(n.client, "udp", netip.AddrPortFrom(vips[1], toWeb))
			}
			f.stop()
		})
	}
}
