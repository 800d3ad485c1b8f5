package compile

import "lace-cni.io/lace/fastpath/packet"

// placed finds the frontend for which an alias stands, 0 for a claim that is none. An alias
// is published only beside that frontend, and for the same Service. It comes after all
// frontends are settled.
func (c *Compiler) placed(l *claim) (of uint32, ok bool) {
	if !l.aliasOf.IsValid() {
		return 0, true
	}
	k := l.key
	k.addr = packet.AddrFrom(l.aliasOf)
	f := c.frontends[k]
	if f == nil || f.id == 0 {
		return 0, false
	}
	holder := f.holder
	return f.id, holder != nil && holder.service == l.service && !holder.aliasOf.IsValid()
}
