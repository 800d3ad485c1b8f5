package oracle

import (
	"fmt"
	"net/netip"
)

// place is where the Services of one cluster take addresses and node ports from: for each
// kind addresses of both families in turn.
type place struct {
	own       []netip.Addr // ClusterIPs
	elsewhere []netip.Addr // addresses that nobody has
	nodePorts []int32
}

// Places is how many there are. An API server gives out by itself none of what they have.
const Places = 28

// placeOf is the n-th, from 0.
func placeOf(n int) place {
	var p place
	for i := range 3 {
		at := 10 + 8*n + i
		p.own = append(p.own, addresses(fmt.Sprintf("10.96.0.%d", at), fmt.Sprintf("fd00:10:96::%x", at))...)
		p.nodePorts = append(p.nodePorts, int32(30000+3*n+i))
	}
	for i := range 2 {
		at := 1 + 2*n + i
		p.elsewhere = append(p.elsewhere, addresses(fmt.Sprintf("203.0.113.%d", at), fmt.Sprintf("2001:db8:113::%x", at))...)
	}
	p.elsewhere = append(p.elsewhere, addresses(fmt.Sprintf("198.51.100.%d", 1+n), fmt.Sprintf("2001:db8:100::%x", 1+n))...)
	return p
}
