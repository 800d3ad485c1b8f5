package conntrack

// Counts says how many slots are in use, two for each flow, and by whom.
type Counts struct {
	Slots int // all in use
	Lane  int // installed in the kernel
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
		switch Mode(r.slots[i+1].marks.Load() >> modeShift) {
		case ModeLane:
			c.Lane++
		case ModePass:
			c.Pass++
		}
	}
	return c
}
