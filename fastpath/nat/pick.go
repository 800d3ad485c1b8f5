package nat

import "math/rand/v2"

// Pick chooses one id, each with exactly the same probability (Lemire's reduction with
// rejection), and independently of the client: who chooses its tuple does not choose its
// backend. An empty list gives 0, the id of no backend.
func Pick(r *rand.Rand, ids []uint32) uint32 {
	if len(ids) == 0 {
		return 0
	}
	return ids[r.Uint32N(uint32(len(ids)))]
}
