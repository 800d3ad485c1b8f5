package main

import (
	"errors"
	"net"
	"net/netip"

	"lace-cni.io/lace/bench/load"
)

// answer answers every datagram to an address of a pod with that address, until end is
// called.
func answer(s *load.Space, at netip.AddrPort) (end func() error, err error) {
	var conn *net.UDPConn
	err = s.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		return nil, err
	}
	name := []byte(at.Addr().String())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 64)
		for {
			_, from, err := conn.ReadFromUDPAddrPort(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = conn.WriteToUDPAddrPort(name, from) // a client that is gone asks again
			}
		}
	}()
	return func() error {
		err := conn.Close()
		<-done
		return err
	}, nil
}
