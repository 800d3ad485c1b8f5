package fragment

import "lace-cni.io/lace/fastpath/reason"

// Losses are held fragments that a call dropped, by reason: those of other datagrams too,
// which made room.
type Losses struct {
	frames, bytes [reason.Count]int
	any           bool
}

// Add notes frames of so many bytes together.
func (l *Losses) Add(r reason.Reason, frames, bytes int) {
	if frames == 0 {
		return
	}
	l.frames[r] += frames
	l.bytes[r] += bytes
	l.any = true
}

// Take calls count for each reason that there are losses for, and forgets them.
func (l *Losses) Take(count func(r reason.Reason, frames, bytes int)) {
	if !l.any {
		return
	}
	for r := range l.frames {
		if l.frames[r] != 0 {
			count(reason.Reason(r), l.frames[r], l.bytes[r])
		}
	}
	*l = Losses{}
}
