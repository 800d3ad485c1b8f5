package hostport

import (
	"errors"
	"strings"
)

// account tells apart who has reserved which ports: the kernel's list does not.
type account struct {
	mine    ports
	beside  ports  // reserved by others when mine were last looked at
	unclear ports  // whose they are nobody knows any more
	written string // the record as it was left
}

// besides stands in the record before what others have reserved.
const besides = "beside "

// accountOf understands a record. One that does not say what was beside it goes by what is there.
func accountOf(text string, there *ports) (*account, error) {
	mine, beside, told := strings.Cut(text, besides)
	own, err := spans(mine)
	if err != nil {
		return nil, err
	}
	others, err := spans(beside)
	if err != nil {
		return nil, err
	}
	if len(own) == 0 {
		return nil, errors.New("it names no port")
	}
	var a account
	if !told {
		a.beside = *there
	}
	a.beside.set(true, others...)
	a.mine.set(true, own...)
	return &a, nil
}

// text is the record, empty if there is nothing to say.
func (a *account) text() string {
	if a.mine == (ports{}) {
		return ""
	}
	return a.mine.text() + besides + a.beside.text()
}

// follow goes by what is reserved now. What is gone is nobody's any more. The kernel writes
// ports that touch as one range: one that has grown has been written by somebody else, and all
// of it is his.
func (a *account) follow(there *ports) {
	for _, s := range there.spans() {
		if a.grown(s) {
			a.mine.set(false, s)
		}
	}
	for n := range there {
		a.mine[n] = a.mine[n] && there[n]
		a.beside[n] = there[n] && !a.mine[n]
		a.unclear[n] = a.unclear[n] && there[n]
	}
}

func (a *account) grown(s Span) bool {
	for n := int(s.First); n <= int(s.Last); n++ {
		if !a.mine[n] && !a.beside[n] {
			return true
		}
	}
	return false
}

// reclaim takes of what is unclear that which is wanted and stands alone, so that it is no part
// of somebody else's range.
func (a *account) reclaim(there *ports, want []Span) {
	if a.unclear == (ports{}) {
		return
	}
	ours := a.mine
	ours.set(true, want...)
	for _, s := range there.spans() {
		if !ours.has(s) {
			continue
		}
		for n := int(s.First); n <= int(s.Last); n++ {
			if a.unclear[n] {
				a.mine[n], a.beside[n], a.unclear[n] = true, false, false
			}
		}
	}
}

// add notes what is going to be reserved.
func (a *account) add(there *ports, missing []Span) {
	for _, s := range missing {
		for n := int(s.First); n <= int(s.Last); n++ {
			a.mine[n] = a.mine[n] || !there[n]
		}
	}
}
