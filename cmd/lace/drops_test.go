package main

import (
	"testing"
	"time"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

func TestBlackHolesInWords(t *testing.T) {
	now := time.Now()
	h := api.BlackHole{Protocol: "UDP", Source: "10.244.1.2:4000", Destination: "10.96.0.10:80", In: "shopper", Device: "eth0", MTU: 1400, Longest: 1500, Packets: 9, Seen: now.Add(-3 * time.Second)}
	const want = "black hole: 9 packets of up to 1500 bytes, UDP from 10.244.1.2:4000 (shopper) to 10.96.0.10:80, do not fit eth0 with an MTU of 1400; the last one 3s ago."
	if got := lostWords(&h, now); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
