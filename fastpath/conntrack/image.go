package conntrack

// image is a consistent copy of one slot, for paths that do not know its tuple.
type image struct {
	key    key
	newLow uint64
	high   [3]uint64 // of the rewritten addresses
	sums   uint64
	owner  uint64
	state  uint64
	stamp  uint64
	marks  uint32
	peer   uint32
	seq    uint32
}

// read copies the slot. It reports false when the slot is free, or when its writer
// stands still inside.
func (im *image) read(s *slot) bool {
	for round := range maxRounds {
		im.seq = s.seq.Load()
		if im.seq&1 != 0 {
			pause(round)
			continue
		}
		if im.key.word = s.key.Load(); im.key.word == 0 {
			return false
		}
		im.key.high, im.high = [3]uint64{}, [3]uint64{}
		if im.key.v6() {
			for i := range 3 {
				im.key.high[i], im.high[i] = s.high[i].Load(), s.newHigh[i].Load()
			}
		}
		im.key.low, im.newLow = s.low.Load(), s.newLow.Load()
		im.sums, im.owner, im.state, im.stamp = s.sums.Load(), s.owner.Load(), s.state.Load(), s.stamp.Load()
		im.marks, im.peer = s.marks.Load(), s.peer.Load()
		if s.seq.Load() == im.seq {
			return true
		}
	}
	return false
}

func (im *image) reply() bool         { return im.marks&replyMark != 0 }
func (im *image) incarnation() uint16 { return incarnationOf(im.seq) }

// flow decodes the image, which was read from slot n.
func (im *image) flow(n uint32, f *Flow) {
	im.key.decode(&f.Tuple)
	if im.key.v6() {
		unpack6(im.newLow, &im.high, &f.Rewrite.Src, &f.Rewrite.Dst)
	} else {
		unpack4(im.newLow, &f.Rewrite.Src, &f.Rewrite.Dst)
	}
	f.fill(im.key.word, im.sums, im.owner, im.state, im.stamp, im.marks)
	f.slot, f.incarnation = n, im.incarnation()
}
