package acts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
)

// flowsPerClient is how many transfers of each client run while a process is killed.
const flowsPerClient = 4

// transfers are streams of every client through web.
type transfers struct {
	streams []Stream
}

func startTransfers(ctx context.Context, s *scene) (*transfers, error) {
	return startTransfersOf(ctx, s, s.Clients())
}

func startTransfersOf(ctx context.Context, s *scene, clients []Client) (*transfers, error) {
	t := &transfers{}
	for _, c := range clients {
		call := s.call("tcp")
		call.Bytes, call.Timeout = 2048, 30*time.Second
		st, err := s.StartStream(ctx, c.Name, traffic.Stream{Request: call, Count: flowsPerClient, Every: 2 * time.Millisecond})
		if err != nil {
			t.stop(context.WithoutCancel(ctx))
			return nil, fmt.Errorf("transfers of %s: %w", c.Name, err)
		}
		t.streams = append(t.streams, st)
	}
	return t, nil
}

// sum adds the state of all streams up; the gap is the longest of any.
func (t *transfers) sum(each func(Stream) (traffic.Progress, error)) (sum traffic.Progress, err error) {
	for _, st := range t.streams {
		p, e := each(st)
		err = errors.Join(err, e)
		sum.Flows += p.Flows
		sum.Broken += p.Broken
		sum.Turns += p.Turns
		sum.Gap = max(sum.Gap, p.Gap)
		if sum.First == "" {
			sum.First = p.First
		}
	}
	return sum, err
}

func (t *transfers) progress(ctx context.Context) (traffic.Progress, error) {
	return t.sum(func(s Stream) (traffic.Progress, error) { return s.Progress(ctx) })
}

func (t *transfers) stop(ctx context.Context) (traffic.Progress, error) {
	return t.sum(func(s Stream) (traffic.Progress, error) { return s.Stop(ctx) })
}

// goOn waits until every stream has moved on from where it is now.
func (t *transfers) goOn(ctx context.Context, patience time.Duration) error {
	for _, st := range t.streams {
		before, err := st.Progress(ctx)
		if err != nil {
			return err
		}
		// Every flow of the stream has to take part: more turns than all but one could
		// have had in flight.
		want := before.Turns + 20*before.Flows
		err = until(ctx, patience, "transfers", func() (bool, error) {
			p, err := st.Progress(ctx)
			return p.Turns >= want || p.Broken > 0, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// killFastpath kills the process that moves the packets of established flows in the middle
// of transfers and starts it again at once.
func killFastpath(ctx context.Context, s *scene) (string, error) {
	return kill(ctx, s, Fastpath, func(ctx context.Context) (string, error) {
		return "", s.Start(ctx, Fastpath)
	})
}

// killAgent kills the process that knows Kubernetes. New connections work without it.
func killAgent(ctx context.Context, s *scene) (string, error) {
	return kill(ctx, s, Agent, func(ctx context.Context) (string, error) {
		t, err := s.Burst(ctx, s.Clients()[0].Name, traffic.Burst{Request: s.call("tcp"), Count: 100})
		if err != nil {
			return "", err
		}
		if t.Failed() > 0 {
			return "", fmt.Errorf("without the agent, %d of %d new connections failed: %s", t.Failed(), t.Attempts, t.First)
		}
		return fmt.Sprintf("; %d new connections without it", t.Attempts), s.Start(ctx, Agent)
	})
}

// recoverWithin bounds the time in which all transfers must go on after a kill.
const recoverWithin = 15 * time.Second

// kill runs transfers, kills, does what is to be done while the process is dead (which
// must start it again), and waits until all goes on.
func kill(ctx context.Context, s *scene, p Process, dead func(context.Context) (string, error)) (string, error) {
	t, err := startTransfers(ctx, s)
	if err != nil {
		return "", err
	}
	more, err := killAmid(ctx, s, t, p, dead)
	sum, stopErr := t.stop(context.WithoutCancel(ctx))
	if err = errors.Join(err, stopErr); err != nil {
		return "", err
	}
	saw := fmt.Sprintf("kill -9 %s: %d broken flows, gap %s", p, sum.Broken, milliseconds(sum.Gap))
	if sum.Broken > 0 {
		return "", fmt.Errorf("%s; %s", saw, sum.First)
	}
	return fmt.Sprintf("%s (%d flows, %d turns%s)", saw, sum.Flows, sum.Turns, more), nil
}

func killAmid(ctx context.Context, s *scene, t *transfers, p Process, dead func(context.Context) (string, error)) (string, error) {
	if err := t.goOn(ctx, recoverWithin); err != nil {
		return "", fmt.Errorf("before the kill: %w", err)
	}
	if err := s.Kill(ctx, p); err != nil {
		return "", err
	}
	more, err := dead(ctx)
	if err != nil {
		return "", err
	}
	if err := t.goOn(ctx, recoverWithin); err != nil {
		return "", fmt.Errorf("after the kill: %w", err)
	}
	if err := s.Ready(ctx); err != nil {
		return "", fmt.Errorf("after the kill: %w", err)
	}
	_, err = t.progress(ctx)
	return more, err
}
