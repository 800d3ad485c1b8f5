package dir

import (
	"bytes"
	"hash/maphash"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// file is what a file of the folder says, or said when it was last right.
type file struct {
	name     string
	version  version // that was read; zero: to be read again
	objects  []Object
	kept     []Object // objects of before that a wrong file does not show any more
	problems problems
	results  map[uint64]result // by document text, so that only what changed is parsed

	unsettled time.Time // since when it differs and is not quiet; zero: it does not
}

// take reads new content into the file, as far as it gets until stop.
func (f *file) take(b []byte, v version, seed maphash.Seed, stop <-chan struct{}) {
	f.version = v
	if len(bytes.TrimSpace(b)) == 0 {
		f.keep("Empty", "the file is empty, as one that is being written is; its objects stay as they were. Remove the file to remove them")
		return
	}
	before := append(f.objects, f.kept...)
	results := map[uint64]result{}
	f.objects, f.kept, f.problems = nil, nil, nil
	broken := false
	for _, d := range split(b) {
		if stopped(stop) {
			return
		}
		key := maphash.Bytes(seed, d.text) + uint64(d.number)<<32 + uint64(d.line) // Problems name number and line
		r, known := f.results[key]
		if !known {
			r = decodeDocument(f.name, d)
		}
		results[key] = r
		f.objects = append(f.objects, r.objects...)
		f.problems = append(f.problems, r.problems...)
		broken = broken || r.broken
	}
	f.results = results
	if broken {
		f.kept = missing(before, f.objects)
	}
}

// keep leaves the objects as they were and says why.
func (f *file) keep(reason, message string) {
	f.problems = problems{{model.Problem{Kind: "File", Object: f.name, Reason: reason, Message: message}, source.Place{File: f.name}}}
	f.results = nil
}

// missing are the objects of before that are not there now.
func missing(before, now []Object) (out []Object) {
	there := map[objectKey]bool{}
	for _, o := range now {
		there[o.key()] = true
	}
	for _, o := range before {
		if !there[o.key()] {
			out = append(out, o)
			there[o.key()] = true
		}
	}
	return out
}
