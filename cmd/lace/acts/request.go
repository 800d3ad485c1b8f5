package acts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// oneRequest lets every kind of client be answered over TCP and UDP, holds one connection
// open and has it explained: the explanation must name the server that holds it.
func oneRequest(ctx context.Context, s *scene) (string, error) {
	var from []string
	for _, c := range s.Clients() {
		for _, network := range []string{"tcp", "udp"} {
			a, err := s.Dial(ctx, c.Name, s.call(network))
			if err != nil {
				return "", err
			}
			if a.Outcome != traffic.OK {
				return "", fmt.Errorf("%s (%s) to web over %s: %s", c.Name, c.Is, network, a)
			}
		}
		from = append(from, c.Name)
	}
	server, verdict, took, err := explained(ctx, s, s.Clients()[0].Name)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s answered over TCP and UDP · %s: %s answers in %s; explain agrees: %s",
		strings.Join(from, ", "), s.Clients()[0].Name, server, took.Round(10*time.Microsecond), verdict), nil
}

func explained(ctx context.Context, s *scene, client string) (server, verdict string, took time.Duration, err error) {
	begin := time.Now()
	stream, err := s.StartStream(ctx, client, traffic.Stream{Request: s.call("tcp"), Every: 10 * time.Millisecond})
	if err != nil {
		return "", "", 0, err
	}
	took = time.Since(begin)
	defer func() {
		_, stopErr := stream.Stop(ctx)
		err = errors.Join(err, stopErr)
	}()
	p, err := stream.Progress(ctx)
	if err != nil {
		return "", "", 0, err
	}
	for name := range p.Servers {
		server = name
	}
	e, err := s.Explain(ctx, client, s.web().String()+"/tcp")
	if err != nil {
		return "", "", 0, err
	}
	if e.Verdict != "forward" || e.Backend == "" {
		return "", "", 0, fmt.Errorf("explain says %s (%s) for a request that is answered", e.Verdict, e.Reason)
	}
	for _, f := range e.Live {
		if strings.HasSuffix(f.Pod, "/"+server) && f.State == "established" {
			return server, fmt.Sprintf("%s, %d steps", e.Reason, stepsOf(e.Steps)), took, nil
		}
	}
	return "", "", 0, fmt.Errorf("explain does not know the open connection with %s among its %d live flows", server, len(e.Live))
}

// stepsOf counts what the table of lace explain has rows for: the verdict stands below it.
func stepsOf(steps []api.Step) int {
	if n := len(steps); n > 0 && steps[n-1].Stage == "verdict" {
		return n - 1
	}
	return len(steps)
}
