package simulated

import (
	"net/netip"
	"sync"

	"lace-cni.io/lace/cmd/lace/simulated/wire"
)

// member is a host and the device of n1 behind which it is.
type member struct {
	*wire.Host
	device string
}

// Devices of n1.
const (
	uplink = "eth0"
	trunk  = "lace0"
)

// network moves frames between hosts, through the node. One goroutine moves them all, in
// the order in which they were sent.
type network struct {
	node    *node
	members []*member

	mu    sync.Mutex
	queue []parcel
	wake  chan struct{}
}

type parcel struct {
	from  *wire.Host
	frame []byte
}

func newNetwork() *network { return &network{wake: make(chan struct{}, 1)} }

// add makes a host behind a device.
func (n *network) add(name, device, addr4, addr6 string) *member {
	m := &member{
		Host:   wire.NewHost(name, netip.MustParseAddr(addr4), netip.MustParseAddr(addr6), n.send),
		device: device,
	}
	n.members = append(n.members, m)
	return m
}

// send is wire.Carry: it queues, and never waits.
func (n *network) send(from *wire.Host, frame []byte) {
	n.mu.Lock()
	n.queue = append(n.queue, parcel{from, frame})
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *network) take() []parcel {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := n.queue
	n.queue = nil
	return q
}

// run moves frames until done is closed.
func (n *network) run(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-n.wake:
			for _, p := range n.take() {
				if !n.node.claim(n.device(p.from), p.frame) {
					n.deliver(p.frame, "")
				}
			}
		case <-n.node.port.Left():
			n.node.collect(n.deliver)
		}
	}
}

// device is the one behind which a host is.
func (n *network) device(h *wire.Host) string {
	for _, m := range n.members {
		if m.Host == h {
			return m.device
		}
	}
	return ""
}

// deliver gives a frame to the host that has its destination address, if that host is
// behind the device; the empty device means wherever it is.
func (n *network) deliver(frame []byte, device string) {
	s, err := wire.Destination(frame)
	if err != nil {
		return
	}
	for _, m := range n.members {
		if m.Has(s) && (device == "" || device == m.device) {
			m.Receive(frame)
			return
		}
	}
}

// named finds a host; nil when there is none.
func (n *network) named(name string) *member {
	for _, m := range n.members {
		if m.Name == name {
			return m
		}
	}
	return nil
}
