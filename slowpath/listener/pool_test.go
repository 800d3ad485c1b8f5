package listener_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"lace-cni.io/lace/slowpath/listener"
)

// TestTheFullestListenerMakesRoom: one that is flooded costs the others nothing, and what
// all of them hold is bounded.
func TestTheFullestListenerMakesRoom(t *testing.T) {
	pool := listener.NewPool(4)
	var bound []*listener.Bounded
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		b := pool.Bound(l, 100)
		defer b.Close()
		bound = append(bound, b)
	}
	connect := func(b *listener.Bounded) (client, held net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		held, err = b.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { held.Close() })
		return client, held
	}
	open := func(want string) {
		t.Helper()
		if got := fmt.Sprint(bound[0].Open(), bound[1].Open(), bound[2].Open(), pool.Open()); got != want {
			t.Errorf("connections of each and of all: %s, want %s", got, want)
		}
	}
	_, quiet := connect(bound[0])
	first, _ := connect(bound[1])
	for range 9 {
		connect(bound[1])
	}
	open("1 3 0 4")
	_ = first.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := first.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the first connection of the flood: %v, want end of file", err)
	}
	connect(bound[2])
	open("1 2 1 4")
	quiet.Close()
	quiet.Close() // twice counts once
	open("0 2 1 3")
	bound[1].Close() // its connections are its owner's now
	connect(bound[0])
	connect(bound[0])
	connect(bound[0])
	open("1 2 1 4")
}
