package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// quiet is how long nothing is printed before a line says what runs.
const quiet = 30 * time.Second

// Read consumes the events of one `go test -json` and prints a line per package to w, and
// one about what runs whenever nothing has ended for a while. When ctx ends it takes no more
// of them: what the tests say when they are killed is no result.
func (r *Report) Read(ctx context.Context, in io.Reader, w io.Writer) error {
	events, failed := decode(ctx, in)
	out := &watched{Writer: w}
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for since := time.Now(); ; {
		select {
		case <-ctx.Done():
			r.stopped = true
			return nil
		case now := <-tick.C:
			fmt.Fprintf(w, " … no result for %s; under way: %s\n", now.Sub(since).Round(time.Second), r.running)
		case e, ok := <-events:
			if !ok && ctx.Err() == nil {
				return <-failed
			}
			if r.add(e, out); out.wrote {
				since, out.wrote = time.Now(), false
				tick.Reset(quiet)
			}
		}
	}
}

// decode hands on each event. When the channel is closed the other one says why.
func decode(ctx context.Context, in io.Reader) (<-chan event, <-chan error) {
	events, failed := make(chan event), make(chan error, 1)
	go func() {
		defer close(events)
		for dec := json.NewDecoder(in); ; {
			var e event
			if err := dec.Decode(&e); err == io.EOF {
				failed <- nil
				return
			} else if err != nil {
				failed <- fmt.Errorf("reading the output of go test: %w", err)
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events, failed
}

// watched remembers that something was written.
type watched struct {
	io.Writer
	wrote bool
}

// Write implements io.Writer.
func (w *watched) Write(b []byte) (int, error) {
	w.wrote = true
	return w.Writer.Write(b)
}
