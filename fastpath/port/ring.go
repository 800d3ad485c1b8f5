package port

// ring is a bounded queue of frames in order of arrival.
type ring struct {
	slots []Frame
	first int
	count int
}

func newRing(size int) ring { return ring{slots: make([]Frame, size)} }

func (r *ring) len() int { return r.count }

// at gives the i-th oldest frame, 0 to len less one.
func (r *ring) at(i int) *Frame { return &r.slots[(r.first+i)%len(r.slots)] }

// push reports false when the ring is full.
func (r *ring) push(f Frame) bool {
	if r.count == len(r.slots) {
		return false
	}
	*r.at(r.count) = f
	r.count++
	return true
}

// pop reports false when the ring is empty.
func (r *ring) pop() (Frame, bool) {
	if r.count == 0 {
		return Frame{}, false
	}
	f := r.slots[r.first]
	r.slots[r.first] = Frame{}
	r.first = (r.first + 1) % len(r.slots)
	r.count--
	return f, true
}
