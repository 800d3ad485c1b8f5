package main

import (
	"encoding/binary"
	"io"
	"net"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// serveUDP answers until the socket fails.
func serveUDP(c net.PacketConn, z *zone) error {
	buf := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return err
		}
		if out := answer(buf[:n], z); out != nil {
			if _, err := c.WriteTo(out, from); err != nil {
				return err
			}
		}
	}
}

// serveTCP answers until the listener fails.
func serveTCP(l net.Listener, z *zone) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go serveConnection(c, z)
	}
}

func serveConnection(c net.Conn, z *zone) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	var size [2]byte
	for {
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		out := answer(q, z)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}

// answer to a message with one question; nil when it is none.
func answer(q []byte, z *zone) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(q); err != nil || len(m.Questions) != 1 || m.Response {
		return nil
	}
	m.Response, m.Authoritative, m.RecursionAvailable = true, true, true
	m.Authorities, m.Additionals = nil, nil
	var known bool
	if m.Answers, known = z.records(m.Questions[0]); !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}
