// Package matrix is what becomes of each kind of packet, as data.
//
// It owns the cells (every combination of family, protocol, frontend, client, backend,
// source, lane and delivery), the rules that make a combination impossible, and one case in
// testdata for each that is possible: a sentence, the packets that come, and the verdict,
// reason and packet that each becomes. The cases are written down and not computed: the
// pipeline alone and the running process are both held to them.
//
// A case speaks of places, so that it reads alike in both families; Addr gives a place its
// address. Its syntax:
//
//	case FAMILIES PROTOCOL FRONTEND TARGET CLIENT>BACKEND SOURCE LANE DELIVERY
//	A sentence.
//	  BY | MET | PACKET | VERDICT REASON | VIA | PACKET
//
// BY is who decides, go or lane (the kernel). MET is "in" or "out" and the port where the
// packet is met. VIA is how it leaves (direct, stack or resume) and the port of that. A
// port "*" is one of the node's range, and the same one throughout a case.
//
// Nothing but tests, and the page that they write, may import it.
package matrix
