package load

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab/testenv"
)

// TestThreadsOfOnePriorityTakeTurns: two threads that wait for each other by asking again
// and again, as parts of Go's runtime do, come to an end on one processor.
func TestThreadsOfOnePriorityTakeTurns(t *testing.T) {
	testenv.Privileged(t)
	const turns = 4
	var turn atomic.Int32
	done := make(chan error, 2)
	deadline := time.Now().Add(20 * time.Second)
	for own := range int32(2) {
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
			err := generate(runtime.NumCPU() - 1)
			for err == nil && turn.Load() < turns && time.Now().Before(deadline) {
				if turn.Load()%2 == own {
					turn.Add(1)
				}
			}
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n := turn.Load(); n < turns {
		t.Errorf("after 20 s they have had %d turns, want %d", n, turns)
	}
}
