package xdp

import (
	"fmt"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
)

// TestFragmentQueue: all fragments of a datagram come to one worker, whatever they hold and
// in whatever order they come; those of both directions too; and datagrams of many clients to
// all workers.
func TestFragmentQueue(t *testing.T) {
	w := newWire(t)
	var used [2]int
	for i := range 40 {
		client, to := fmt.Sprintf("192.0.2.%d", 100+i), "10.96.0.1"
		piece := func(field uint16, payload []byte) []byte { return ip4(client, to, 17, field, nil, payload) }
		frames := [][]byte{piece(0x0002, []byte{9}), piece(fragFirst, udp(uint16(1000+i), 53)), piece(fragLater, []byte{1, 2, 3, 4, 5, 6, 7, 8})}
		if i%2 == 1 {
			client, to = fmt.Sprintf("2001:db8::%x", 100+i), "fd96::1"
			piece6 := func(field byte, payload []byte) []byte {
				return ip6(client, to, 44, join([]byte{17, 0, 0, field, 0, 0, 0, 7}, payload))
			}
			frames = [][]byte{piece6(0x10, []byte{9}), piece6(0x01, udp(uint16(1000+i), 53)), piece6(0x09, []byte{1, 2, 3, 4, 5, 6, 7, 8})}
		}
		queue := -1
		for k, frame := range frames {
			w.toOut.send(t, frame, len(frame))
			q := w.receiveExactly(t, onTrunk(frame, 0x50, packet.PuntVIP, uplinkID))
			if queue >= 0 && q != queue {
				t.Errorf("client %s: fragment %d comes to queue %d, those before it to %d", client, k, q, queue)
			}
			queue = q
		}
		used[queue]++
	}
	if used[0] < 8 || used[1] < 8 {
		t.Errorf("40 clients are spread %v over two queues", used)
	}
}
