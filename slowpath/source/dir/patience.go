package dir

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// How long a file may take, and how many files that take longer are waited for at once:
// each holds a thread.
const (
	MaxWait     = 500 * time.Millisecond // of a folder that is followed: the other files wait as long
	MaxWaitOnce = time.Minute            // of one that is read once
	MaxSlow     = 16
)

// answer is what the kernel says about a file.
type answer struct {
	stat    unix.Stat_t
	content []byte
	version version
	err     error
}

// patience asks the kernel for things that may never come: a file on a server that is
// gone, or one that is no document but a source of events. What takes too long is left
// to a goroutine of its own, and taken when it is asked for again and has come. Used by
// one goroutine.
type patience struct {
	wait    time.Duration
	most    int
	stop    <-chan struct{} // nobody waits after that; nil: never
	pending map[string]*pending
}

type pending struct {
	answers chan answer // of one
	wanted  bool        // asked for since the last tidy
}

func newPatience() patience {
	return patience{wait: MaxWait, most: MaxSlow, pending: map[string]*pending{}}
}

// ask returns what call returns, or an error when that takes too long. what tells one
// question from another: while it is open it is not put again and nobody waits for it.
func (p *patience) ask(what string, call func() answer) answer {
	open, asked := p.pending[what]
	if asked {
		open.wanted = true
		select {
		case a := <-open.answers:
			delete(p.pending, what)
			return a
		default:
			return p.slow()
		}
	}
	if len(p.pending) >= p.most {
		return answer{err: fmt.Errorf("%d other files do not answer and are waited for; repair or remove them first", len(p.pending))}
	}
	open = &pending{make(chan answer, 1), true}
	go func() { open.answers <- call() }()
	timer := time.NewTimer(p.wait)
	defer timer.Stop()
	select {
	case a := <-open.answers:
		return a
	case <-timer.C:
	case <-p.stop:
	}
	p.pending[what] = open
	return p.slow()
}

func (p *patience) slow() answer {
	return answer{err: fmt.Errorf("it does not answer within %v, and is taken when it does; repair or remove it", p.wait)}
}

// tidy forgets answers that came and that nobody asked for since the last time.
func (p *patience) tidy() {
	for what, open := range p.pending {
		if !open.wanted && len(open.answers) > 0 {
			delete(p.pending, what)
		}
		open.wanted = false
	}
}
