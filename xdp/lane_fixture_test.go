package xdp

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// Ids that the lane's tests use, chosen so that a mistaken index shows.
const (
	frontendID = FrontendIDs - 1
	backendID  = BackendIDs - 2
	secondID   = 8 // another uplink
)

// decided is a flow that Go decided and installed: its addresses, the ports on which both
// directions come in, and whom the backend sees if not the client.
type decided struct {
	pair
	clientPort, backendPort uint16 // ids of ports
	source                  string // and with the same source port; "": the client
}

// laneNode is a node whose lane is on, with generations that begin at 1.
func laneNode(t testing.TB) *node {
	t.Helper()
	return laneNodeOn(t, open(t, mountBPF(t)))
}

func laneNodeOn(t testing.TB, o *Objects) *node {
	t.Helper()
	n := newNode(t, o)
	n.second = veth(t, "tup.8")
	must(t, n.o.SyncPorts(n.lanePorts()))
	must(t, n.o.SyncGenerations(n.tables(t, nil)))
	must(t, n.o.SetLane(true))
	return n
}

func (n *node) lanePorts() []table.Port {
	ports := append(n.ports(), table.Port{ID: secondID, Kind: table.PortUplink, Ifindex: uint32(n.second), HostMAC: uplinkMAC, MTU: 1500, Name: portName("tup.8")})
	for i := range ports {
		ports[i].Generation = 3
	}
	return ports
}

// tables are the snapshot that fits the decisions, after change.
func (n *node) tables(t testing.TB, change func(*table.Contents)) *table.Snapshot {
	t.Helper()
	c := table.Contents{
		Settings:  table.DefaultSettings(),
		Ports:     n.lanePorts(),
		Frontends: []table.Frontend{{ID: frontendID, Addr: mapped("10.96.0.1"), Port: 80, Protocol: packet.ProtocolTCP, Generation: 1}},
		Backends:  []table.Backend{{ID: backendID, Addr: mapped("10.1.0.3"), Port: 8080, Protocol: packet.ProtocolTCP, Generation: 2, Serving: 1}},
	}
	for i := range c.Ports {
		if c.Ports[i].Kind == table.PortHost {
			c.Ports[i].MTU = 1500
		}
	}
	if change != nil {
		change(&c)
	}
	b, err := table.Encode(nil, &c)
	must(t, err)
	s, err := table.Load(b)
	must(t, err)
	return s
}

// decide makes both directions as the pipeline would.
func (d decided) decide() (fwd, rev conntrack.Flow) {
	client := conntrack.Tuple{
		Src: mapped(d.client), Dst: mapped(d.vip), SrcPort: d.pair.clientPort, DstPort: d.vipPort,
		Network: d.network, Protocol: d.protocol,
	}
	t := nat.To(&client, d.network, mapped(d.backend), d.pair.backendPort)
	if d.source != "" {
		t.Source = mapped(d.source)
	}
	for _, f := range []*conntrack.Flow{&fwd, &rev} {
		f.Frontend, f.Backend = frontendID, backendID
		f.Stamp = conntrack.Stamp{Frontend: 1, Backend: 2, Target: 3}
		f.State = conntrack.StateSeen
	}
	fwd.In, fwd.Target = d.clientPort, d.backendPort
	rev.In, rev.Target = d.backendPort, d.clientPort
	t.Make(&fwd, &rev)
	return fwd, rev
}

// install puts the flow into the table and into the lane.
func (n *node) install(t testing.TB, d decided) (fwd, rev conntrack.Flow) {
	t.Helper()
	fwd, rev = d.decide()
	if r := n.flows.Insert(&fwd, &rev, 1); r != conntrack.Inserted {
		t.Fatalf("inserting %+v: %v", d, r)
	}
	if !n.flows.InstallPair(&fwd) {
		t.Fatal("the flow cannot be installed")
	}
	return fwd, rev
}

// transport is a TCP or UDP header and payload with the checksum left out.
func transport(protocol uint8, src, dst uint16, flags byte, payload string) []byte {
	if protocol == packet.ProtocolUDP {
		b := binary.BigEndian.AppendUint16(ports(src, dst), uint16(8+len(payload)))
		return append(append(b, 0, 0), payload...)
	}
	b := append(ports(src, dst), 0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0)
	return append(b, payload...)
}

// header is where the transport header of a frame without options lies, and its protocol.
func header(frame []byte) (at int, protocol uint8) {
	if frame[12] == 0x86 {
		return 54, frame[20]
	}
	return 34, frame[23]
}

// seal fills in the transport checksum, worked out from nothing but the bytes.
func seal(frame []byte) []byte {
	l4, protocol := header(frame)
	check := l4 + 16
	if protocol == packet.ProtocolUDP {
		check = l4 + 6
	}
	binary.BigEndian.PutUint16(frame[check:], 0)
	binary.BigEndian.PutUint16(frame[check:], ^wholeSum(frame))
	return frame
}

// wholeSum sums transport and pseudo header; 0xffff for a correct checksum.
func wholeSum(frame []byte) uint16 {
	l4, protocol := header(frame)
	addresses := frame[26:34]
	if l4 == 54 {
		addresses = frame[22:54]
	}
	body := frame[l4:]
	b := append(append([]byte{}, addresses...), 0, protocol)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	b = append(b, body...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	return ones(b)
}

// segment is a packet with correct checksums.
func segment(src, dst string, protocol uint8, srcPort, dstPort uint16, flags byte, payload string) []byte {
	return seal(from(src, dst, protocol, transport(protocol, srcPort, dstPort, flags, payload)))
}

// there and back are packets of the flow as they come in; thereOut and backOut as they
// leave, but for the Ethernet addresses and the time to live.
func (d decided) there(flags byte, payload string) []byte {
	return segment(d.client, d.vip, d.protocol, d.pair.clientPort, d.vipPort, flags, payload)
}

func (d decided) thereOut(flags byte, payload string) []byte {
	return segment(d.seen(), d.backend, d.protocol, d.pair.clientPort, d.pair.backendPort, flags, payload)
}

func (d decided) back(flags byte, payload string) []byte {
	return segment(d.backend, d.seen(), d.protocol, d.pair.backendPort, d.pair.clientPort, flags, payload)
}

func (d decided) backOut(flags byte, payload string) []byte {
	return segment(d.vip, d.client, d.protocol, d.vipPort, d.pair.clientPort, flags, payload)
}

// seen is the client as the backend sees it.
func (d decided) seen() string {
	switch {
	case d.source != "":
		return d.source
	case d.backend == d.client:
		return d.vip
	}
	return d.client
}

// older is the frame with another time to live and an IPv4 header checksum to match.
func older(frame []byte, ttl byte) []byte {
	f := append([]byte{}, frame...)
	if f[12] == 0x86 {
		f[21] = ttl
		return f
	}
	f[22] = ttl
	binary.BigEndian.PutUint16(f[24:], 0)
	binary.BigEndian.PutUint16(f[24:], ^ones(f[14:34]))
	return f
}

// toNode is the frame with the first Ethernet address alone replaced.
func toNode(frame []byte, dst [6]byte) []byte {
	f := append([]byte{}, frame...)
	copy(f, dst[:])
	return f
}

// runComplete is run as if a device had summed all bytes of the packet (CHECKSUM_COMPLETE).
// The kernel refuses the run when its sum is not that of the bytes afterwards. It reports
// false where the kernel cannot do that.
func (n *node) runComplete(t testing.TB, p *ebpf.Program, frame []byte, in skb) bool {
	t.Helper()
	const testComplete = 1 << 2 // BPF_F_TEST_SKB_CHECKSUM_COMPLETE
	opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+64), Context: in, Flags: testComplete}
	_, err := p.Run(&opts)
	if isUnknownFlag(err) {
		return false
	}
	if err != nil {
		t.Errorf("with a device's sum over all bytes: %v", err)
	}
	return true
}
