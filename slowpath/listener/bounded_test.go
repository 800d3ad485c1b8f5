package listener_test

import (
	"io"
	"net"
	"testing"
	"time"

	"lace-cni.io/lace/slowpath/listener"
)

func TestTheOldestConnectionMakesRoom(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := listener.Bound(l, 2)
	defer b.Close()
	var clients, held []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
		h, err := b.Accept()
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, h)
	}
	_ = clients[0].SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := clients[0].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the first of three connections: %v, want end of file", err)
	}
	if b.Open() != 2 {
		t.Errorf("%d connections are held, want 2", b.Open())
	}
	for _, h := range held {
		h.Close()
	}
	if b.Open() != 0 {
		t.Errorf("%d connections are held after all were closed, want 0", b.Open())
	}
}
