package acts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
)

// Flood is a running flood of a stage.
type Flood interface {
	// Stop ends it and tells how many packets were sent.
	Stop(ctx context.Context) (uint64, error)
}

const (
	floodRate  = 200_000 // packets a second asked for; what is sent is what the machine manages
	floodCalls = 100     // new connections of each other client meanwhile
	floodWait  = 10 * time.Second
)

// flood lets one client send SYNs as fast as it can while connections of the others go on
// and begin.
func flood(ctx context.Context, s *scene) (string, error) {
	noisy, others := s.Clients()[0].Name, s.Clients()[1:]
	t, err := startTransfersOf(ctx, s, others)
	if err != nil {
		return "", err
	}
	before, err := s.heldBack(ctx)
	if err != nil {
		return "", errors.Join(err, t.end(ctx))
	}
	begin := time.Now()
	f, err := s.StartFlood(ctx, noisy, traffic.Flood{Network: "tcp", To: s.web(), Rate: floodRate})
	if err != nil {
		return "", errors.Join(err, t.end(ctx))
	}
	calls, err := callMeanwhile(ctx, s, t, others)
	sent, stopErr := f.Stop(context.WithoutCancel(ctx))
	took := time.Since(begin)
	sum, endErr := t.stop(context.WithoutCancel(ctx))
	if err = errors.Join(err, stopErr, endErr); err != nil {
		return "", err
	}
	after, err := s.heldBack(ctx)
	if err != nil {
		return "", err
	}
	saw := fmt.Sprintf("%s sends %.0f SYNs/s: of the others, %d of %d flows broke, %d of %d new connections failed",
		noisy, float64(sent)/took.Seconds(), sum.Broken, sum.Flows, calls.Failed(), calls.Attempts)
	if sum.Broken > 0 || calls.Failed() > 0 {
		return "", fmt.Errorf("%s; %s%s", saw, sum.First, calls.First)
	}
	return fmt.Sprintf("%s (slowest after %s); %d of %d packets held back", saw, milliseconds(calls.Slowest), after-before, sent), nil
}

// callMeanwhile makes new connections from each client and waits until their flows move.
func callMeanwhile(ctx context.Context, s *scene, t *transfers, clients []Client) (all traffic.Tally, err error) {
	for _, c := range clients {
		call := s.call("tcp")
		call.Timeout = floodWait
		tally, err := s.Burst(ctx, c.Name, traffic.Burst{Request: call, Count: floodCalls})
		if err != nil {
			return all, err
		}
		all.Merge(tally)
	}
	if err := t.goOn(ctx, recoverWithin); err != nil {
		return all, fmt.Errorf("during the flood: %w", err)
	}
	return all, nil
}

// heldBack counts what was dropped because somebody asked for too much.
func (s *scene) heldBack(ctx context.Context) (n uint64, err error) {
	drops, err := s.Drops(ctx)
	for _, d := range drops {
		switch d.Reason {
		case "policed", "flow-share-full", "half-open-full":
			n += d.Packets
		}
	}
	return n, err
}

// end stops transfers whose outcome does not matter any more.
func (t *transfers) end(ctx context.Context) error {
	_, err := t.stop(context.WithoutCancel(ctx))
	return err
}
