package dir

import (
	"fmt"
	"slices"
	"time"
)

// looking is one look at the folder on its way.
type looking struct {
	*folder
	now, noticed time.Time
	again        time.Duration
	triggers     map[string]time.Time // of files that were read or are gone
	total        int64
}

// meet brings the known files in line with the found ones, as far as it gets until it is stopped.
func (l *looking) meet(found []listed) {
	for _, f := range found {
		if stopped(l.patience.stop) {
			return
		}
		l.total += f.version.size
		l.meetOne(&f)
	}
	l.files = slices.DeleteFunc(l.files, func(f *file) bool {
		if _, there := slices.BinarySearchFunc(found, f.name, func(l listed, n string) int { return compareNames(l.name, n) }); there {
			return false
		}
		return l.gone(f)
	})
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// meetOne reads a file if it changed and is quiet.
func (l *looking) meetOne(found *listed) {
	i, known := l.file(found.name)
	if !known {
		l.files = slices.Insert(l.files, i, &file{name: found.name})
	}
	f := l.files[i]
	if found.err != nil {
		l.unreadable(f, found.err)
		return
	}
	if f.version == found.version {
		f.unsettled = time.Time{}
		return
	}
	if wait := l.wait(f, found.version.modified.Add(l.settle)); wait > 0 {
		l.comeBack(wait)
		return
	}
	l.read(f)
}

// wait says how long the file has to be left alone before it is read. A file that is
// never quiet is read all the same after a while.
func (l *looking) wait(f *file, quiet time.Time) time.Duration {
	if f.unsettled.IsZero() {
		f.unsettled = l.noticed
	}
	if deadline := f.unsettled.Add(l.most); quiet.After(deadline) {
		quiet = deadline
	}
	return quiet.Sub(l.now)
}

func (l *looking) comeBack(after time.Duration) {
	if l.again == 0 || after < l.again {
		l.again = after
	}
}

func (l *looking) read(f *file) {
	trigger := l.trigger(f)
	f.unsettled = time.Time{}
	if l.total > l.limits.total {
		l.unreadable(f, fmt.Errorf("all files together exceed %d bytes; make the folder smaller", l.limits.total))
		return
	}
	path, most := l.full(f.name), l.limits.fileSize
	a := l.patience.ask("read "+path, func() (a answer) {
		a.content, a.version, a.err = l.open(path, most)
		return a
	})
	if a.err != nil {
		l.unreadable(f, a.err)
		return
	}
	b, v := a.content, a.version
	if v == (version{}) {
		l.comeBack(l.settle)
	}
	f.take(b, v, l.seed, l.patience.stop)
	if !v.modified.IsZero() && v.modified.Before(trigger) && trigger.Sub(v.modified) < 2*time.Second {
		trigger = v.modified // what was noticed is this write
	}
	l.triggers[f.name] = trigger
}

// trigger is when the change of the file was noticed.
func (l *looking) trigger(f *file) time.Time {
	if f.unsettled.IsZero() {
		return l.noticed
	}
	return f.unsettled
}

// unreadable keeps the objects of a file that is there and cannot be read. Its version
// is forgotten, so that it is tried again.
func (l *looking) unreadable(f *file, err error) {
	f.version = version{}
	f.keep("Unreadable", fmt.Sprintf("the file cannot be read: %v; its objects stay as they were", err))
}

// gone says whether a file that is not there any more is to be forgotten: editors take
// a file away for a moment when they save it.
func (l *looking) gone(f *file) bool {
	if f.unsettled.IsZero() {
		f.unsettled = l.noticed
	}
	if wait := f.unsettled.Add(l.settle).Sub(l.now); wait > 0 {
		l.comeBack(wait)
		return false
	}
	l.triggers[f.name] = f.unsettled
	return true
}
