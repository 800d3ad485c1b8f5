package simulated

import (
	"context"
	"fmt"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/cmd/lace/acts"
)

// Clients are a pod, the node and the outside client.
func (s *Stage) Clients() []acts.Client {
	return []acts.Client{
		{Name: "shopper", Is: "a pod on n1"},
		{Name: nodeName, Is: "the node itself"},
		{Name: lab.OutsideName, Is: "outside of the cluster"},
	}
}

func (s *Stage) client(name string) (*member, error) {
	if m := s.network.named(name); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("no host %q in the simulation", name)
}

// Dial makes one attempt.
func (s *Stage) Dial(ctx context.Context, from string, r traffic.Request) (traffic.Answer, error) {
	m, err := s.client(from)
	if err != nil {
		return traffic.Answer{}, err
	}
	return traffic.DialBy(ctx, m.Connect, r), nil
}

// Burst makes many attempts.
func (s *Stage) Burst(ctx context.Context, from string, b traffic.Burst) (t traffic.Tally, err error) {
	m, err := s.client(from)
	if err != nil {
		return t, err
	}
	begin := time.Now()
	b.RunBy(ctx, m.Connect, t.Add)
	t.Took = time.Since(begin)
	return t, ctx.Err()
}

// attempts implements acts.Attempts.
type attempts struct {
	cancel  context.CancelFunc
	done    chan struct{}
	answers []traffic.Answer
}

// StartAttempts makes attempts until they are stopped.
func (s *Stage) StartAttempts(_ context.Context, from string, b traffic.Burst) (acts.Attempts, error) {
	m, err := s.client(from)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &attempts{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		b.RunBy(ctx, m.Connect, func(answer traffic.Answer) { a.answers = append(a.answers, answer) })
	}()
	return a, nil
}

// Stop implements acts.Attempts.
func (a *attempts) Stop(context.Context) ([]traffic.Answer, error) {
	a.cancel()
	<-a.done
	return a.answers, nil
}

// stream implements acts.Stream.
type stream struct{ running *traffic.RunningStream }

// StartStream opens long-lived flows.
func (s *Stage) StartStream(_ context.Context, from string, st traffic.Stream) (acts.Stream, error) {
	m, err := s.client(from)
	if err != nil {
		return nil, err
	}
	r, err := st.StartBy(context.Background(), m.Connect)
	if err != nil {
		return nil, err
	}
	return stream{r}, nil
}

func (s stream) Progress(context.Context) (traffic.Progress, error) { return s.running.Progress(), nil }
func (s stream) Stop(context.Context) (traffic.Progress, error)     { return s.running.Stop(), nil }
