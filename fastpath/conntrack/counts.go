package conntrack

// Counts says how many slots are in use, two for each flow, and by whom.
type Counts struct {
	Slots int // all in use
	Lane  int // of clients, installed in the kernel: with that a flow is, in both directions
	Pass  int // left to the kernel's own stack
}

// Counts walks over the whole table, some nanoseconds for each slot that is free. What is written
// meanwhile may be counted or not.
func (r *Reader) Counts() (c Counts) {
	for i := range r.slots[1:] {
		if !r.tagged(uint32(i) + 1) {
			continue
		}
		c.Slots++
		marks := r.slots[i+1].marks.Load()
		switch Mode(marks >> modeShift) {
		case ModeLane:
			if marks&replyMark == 0 {
				c.Lane++
			}
		case ModePass:
			c.Pass++
		}
	}
	return c
}
