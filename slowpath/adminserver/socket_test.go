package adminserver

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// TestTheSocketIsMadeAgain when somebody takes it away or puts something in its place, and
// goes with the server in the end.
func TestTheSocketIsMadeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.sock")
	var repaired atomic.Int32
	s, err := New(Config{Socket: path, Node: newPlayed(t), Repaired: func() { repaired.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	answers := func() error {
		c := api.NewClient(path)
		defer c.Close()
		_, err := c.Services(t.Context())
		return err
	}
	for i, spoil := range []func() error{
		func() error { return os.Remove(path) },
		func() error { return os.Rename(path, path+".old") },
		func() error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
		func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if err := answers(); err == nil {
			t.Errorf("case %d: there is an answer without the socket", i)
		}
		for deadline := time.Now().Add(20 * time.Second); answers() != nil; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("case %d: no answer: %v", i, answers())
			}
		}
		if got := repaired.Load(); got != int32(i+1) {
			t.Errorf("case %d: %d repairs are told, want %d", i, got, i+1)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v, want no socket", err)
	}
}
