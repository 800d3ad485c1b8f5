package kube

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

// Places are the addresses and ports of the API servers, those of names as they are resolved
// now. A name that cannot be resolved has none.
func (k *Kube) Places(ctx context.Context) (out []netip.AddrPort) {
	for _, u := range k.servers {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			continue
		}
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
		if err != nil {
			k.config.Log.Warn("the addresses of an API server are not known, so that they are not kept from Services", "server", u.Host, "error", err)
			continue
		}
		for _, a := range addrs {
			out = append(out, netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port)))
		}
	}
	return out
}
