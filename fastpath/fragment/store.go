package fragment

// chunkSize is the unit in which held fragments are stored: a compromise between what the
// last one of a frame wastes and the length of its chain.
const chunkSize = 512

// store holds copies of frames in chunks. A frame is named by its first chunk; 0 is none.
type store struct {
	bytes []byte
	chunk []uint32 // next chunk of the same frame, or of the free ones
	frame []uint32 // of a first chunk: the next frame of the list that it is in
	size  []uint16 // of a first chunk: length of the frame
	free  uint32
	fresh uint32 // chunks from here on were never used
	used  int
}

func newStore(chunks int) store {
	n := chunks + 1
	return store{
		bytes: make([]byte, n*chunkSize),
		chunk: make([]uint32, n), frame: make([]uint32, n), size: make([]uint16, n), fresh: 1,
	}
}

func chunksOf(length int) int { return (length + chunkSize - 1) / chunkSize }

func (s *store) room() int { return len(s.chunk) - 1 - s.used }

func (s *store) take() uint32 {
	s.used++
	if i := s.free; i != 0 {
		s.free = s.chunk[i]
		return i
	}
	s.fresh++
	return s.fresh - 1
}

// put copies a frame in; the caller has made sure that there is room.
func (s *store) put(b []byte) (first uint32) {
	var last uint32
	length := len(b)
	for len(b) > 0 {
		i := s.take()
		n := copy(s.bytes[int(i)*chunkSize:(int(i)+1)*chunkSize], b)
		b = b[n:]
		s.chunk[i] = 0
		if last == 0 {
			first = i
		} else {
			s.chunk[last] = i
		}
		last = i
	}
	s.size[first], s.frame[first] = uint16(length), 0
	return first
}

// get copies a frame out, as much of it as dst has room for, and returns its length.
func (s *store) get(first uint32, dst []byte) int {
	length := int(s.size[first])
	b := dst[:min(length, len(dst))]
	for i := first; i != 0 && len(b) > 0; i = s.chunk[i] {
		n := copy(b, s.bytes[int(i)*chunkSize:(int(i)+1)*chunkSize])
		b = b[n:]
	}
	return length
}

// drop frees a frame's chunks and returns how many they were.
func (s *store) drop(first uint32) (chunks int) {
	for i := first; i != 0; {
		next := s.chunk[i]
		s.chunk[i], s.free = s.free, i
		i = next
		chunks++
	}
	s.used -= chunks
	return chunks
}
