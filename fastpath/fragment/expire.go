package fragment

import "lace-cni.io/lace/fastpath/reason"

// expireAtOnce bounds what one fragment pays for old datagrams.
const expireAtOnce = 4

// Expire forgets datagrams that have been waited for long enough. What was held of them is
// lost. It costs a lock for each shard, and is to be called every now and then.
func (t *Table) Expire(now int64, lost *Losses) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.expire(now, expirePortion, lost)
		s.mu.Unlock()
	}
}

// expirePortion bounds how long Expire holds a lock.
const expirePortion = 256

func (s *shard) expire(now int64, most int, lost *Losses) {
	for ; most > 0; most-- {
		i := s.ages.head
		if i == 0 || now-s.list[i].born < int64(Lifetime) {
			return
		}
		s.forget(i, reason.FragmentTimeout, lost)
	}
}
