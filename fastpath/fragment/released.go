package fragment

import "lace-cni.io/lace/fastpath/reason"

// Released are fragments that were held and whose first one is decided about.
type Released struct {
	shard *shard
	first uint32
	owner uint16
}

// Any reports whether there is one left.
func (r *Released) Any() bool { return r.first != 0 }

// Next copies the next fragment into b, as much as b has room for, and returns its length.
// 0: none is left.
func (r *Released) Next(b []byte) int {
	if r.first == 0 {
		return 0
	}
	s := r.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.store.get(r.first, b)
	r.pop()
	return n
}

// Drop gives up those that are left.
func (r *Released) Drop(why reason.Reason, lost *Losses) {
	if r.first == 0 {
		return
	}
	s := r.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	for r.first != 0 {
		lost.Add(why, 1, int(s.store.size[r.first]))
		r.pop()
	}
}

func (r *Released) pop() {
	s := r.shard
	next := s.store.frame[r.first]
	s.accounts[r.owner].chunks -= uint32(s.store.drop(r.first))
	r.first = next
}
