package load

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"lace-cni.io/lace/bench/load/bpf"
)

// Mode of a Sink: what becomes of the packets that it counts.
type Mode uint32

const (
	Ignore  Mode = 0 // nothing is counted
	Swallow Mode = 1 // dropped
	Answer  Mode = 2 // sent back from where they were addressed to
)

// Sink counts UDP, or TCP, of a port at the ingress of a device, before the network stack. It costs
// the same whatever brought the packet.
type Sink struct {
	objects bpf.LoadObjects
	link    link.Link
	port    uint16
	reply   bool
	tcp     bool
}

// wanted is struct wanted of bpf/load.c.
type wanted struct {
	Mode  uint32
	Port  [2]byte // network order
	Reply uint8
	TCP   uint8
}

// OpenSink attaches a sink for packets to a port, or, with reply, from a port. It ignores
// everything until Set.
func OpenSink(s *Space, device string, port uint16, reply bool) (*Sink, error) {
	return openSink(s, device, &Sink{port: port, reply: reply})
}

// OpenTCPSink is OpenSink for TCP. It can only swallow.
func OpenTCPSink(s *Space, device string, port uint16, reply bool) (*Sink, error) {
	return openSink(s, device, &Sink{port: port, reply: reply, tcp: true})
}

func openSink(s *Space, device string, k *Sink) (*Sink, error) {
	if err := bpf.LoadLoadObjects(&k.objects, nil); err != nil {
		return nil, fmt.Errorf("load the programs of a sink: %w", err)
	}
	index, err := s.Index(device)
	if err == nil {
		err = s.Do(func() (err error) {
			k.link, err = link.AttachTCX(link.TCXOptions{Interface: index, Program: k.objects.Take, Attach: ebpf.AttachTCXIngress})
			return err
		})
	}
	if err != nil {
		k.objects.Close()
		return nil, fmt.Errorf("attach a sink to %s of %s: %w", device, s.name, err)
	}
	return k, nil
}

// Set changes what becomes of packets.
func (k *Sink) Set(m Mode) error {
	w := wanted{Mode: uint32(m), Port: big(k.port)}
	if k.reply {
		w.Reply = 1
	}
	if k.tcp {
		w.TCP = 1
	}
	if err := k.objects.Wanteds.Put(uint32(0), &w); err != nil {
		return fmt.Errorf("set a sink to mode %d: %w", m, err)
	}
	return nil
}

// Taken is the number of packets counted since the sink was opened.
func (k *Sink) Taken() (uint64, error) { return sum(k.objects.Taken) }

// Close detaches the sink.
func (k *Sink) Close() error {
	err := k.link.Close()
	k.objects.Close()
	return err
}

func big(v uint16) [2]byte { return [2]byte{byte(v >> 8), byte(v)} }

// sum adds up a counter that every processor has.
func sum(m *ebpf.Map) (total uint64, err error) {
	var each []uint64
	if err := m.Lookup(uint32(0), &each); err != nil {
		return 0, fmt.Errorf("read a counter: %w", err)
	}
	for _, n := range each {
		total += n
	}
	return total, nil
}
