package acts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// View is one picture of the running demo.
type View struct {
	Label     string
	Simulated bool
	Status    api.Status
	Backends  []api.Backend // of the family that is looked at
	Tally     traffic.Tally // of the last second's connections, by all clients
	PerSecond float64       // packets that Go decided
	Drops     []api.Drop
	Manifests string
	Tells     []string
	Error     error // why the picture is not complete
}

// watchEvery is how often the picture changes, and connections of one client per picture.
const (
	watchEvery       = time.Second
	watchConnections = 60
)

// Watch makes connections from every client, alternating families, and hands a View to
// show every second until ctx ends.
func Watch(ctx context.Context, s Stage, show func(View)) {
	var before View
	begin := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		family := 4 + 2*(i%2)
		v := look(ctx, &scene{Stage: s, family: family})
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		if p := before.Status.Fastpath.Packets; p > 0 && v.Status.Fastpath.Packets >= p {
			v.PerSecond = float64(v.Status.Fastpath.Packets-p) / now.Sub(begin).Seconds()
		}
		show(v)
		before, begin = v, now
	}
}

// look makes the second's connections and asks the agent.
func look(ctx context.Context, s *scene) View {
	v := View{Label: s.Label(), Simulated: s.Simulated(), Manifests: s.Manifests(), Tells: s.Tells()}
	tallies := make(chan traffic.Tally)
	for _, c := range s.Clients() {
		go func() {
			call := s.call("tcp")
			call.Timeout = watchEvery
			t, err := s.Burst(ctx, c.Name, traffic.Burst{Request: call, Count: watchConnections, Every: watchEvery / watchConnections})
			if err != nil {
				t = traffic.Tally{First: err.Error()}
			}
			tallies <- t
		}()
	}
	for range s.Clients() {
		v.Tally.Merge(<-tallies)
	}
	v.ask(ctx, s)
	return v
}

func (v *View) ask(ctx context.Context, s *scene) {
	nodes, err := s.Status(ctx)
	if err != nil || len(nodes) == 0 {
		v.Error = err
		return
	}
	v.Status = nodes[0]
	backends, err := s.Backends(ctx)
	if err != nil {
		v.Error = err
		return
	}
	for _, b := range backends {
		if strings.Contains(b.Address, ":") == (s.family == 6) {
			v.Backends = append(v.Backends, b)
		}
	}
	v.Drops, v.Error = s.Drops(ctx)
}

// barWidth is the length of the bar of a share of one.
const barWidth = 40

// Render writes the picture as text, a line each.
func (v View) Render(p screen.Paint) string {
	var out strings.Builder
	title := "lace demo · " + v.Label
	if v.Simulated {
		title = p.Warn("SIMULATED") + " · " + title
	}
	g := v.Status.Generation
	fmt.Fprintf(&out, "%s · generation %d", p.Bold(title), g.InUse)
	if g.Programming > 0 {
		fmt.Fprintf(&out, " · programmed in %s", milliseconds(time.Duration(g.Programming*float64(time.Second))))
	}
	out.WriteString("\n\n")
	screen.WriteTable(&out, screen.Table, v.columns(), v.Backends)
	fmt.Fprintf(&out, "\nCONNECTIONS %d in the last second, %s\n", v.Tally.Attempts, v.outcomes(p))
	f := v.Status.Fastpath
	fmt.Fprintf(&out, "PACKETS     %.0f/s through Go\nFLOWS       %d of %d\n", v.PerSecond, f.Flows, f.FlowsMax)
	fmt.Fprintf(&out, "DROPS       %s\n\n", v.drops())
	if v.Error != nil {
		fmt.Fprintf(&out, "%s\n\n", p.Bad(v.Error.Error()))
	}
	fmt.Fprintf(&out, "edit and save: %s   [q] quit\n", v.Manifests)
	for _, text := range v.Tells {
		fmt.Fprintln(&out, text)
	}
	return out.String()
}

// dialled says whether the demo's own connections go to this Service port.
func dialled(b api.Backend) bool { return b.Service == "web" && b.Protocol == "TCP" }

func (v View) columns() []screen.Column[api.Backend] {
	share := func(b api.Backend) float64 {
		return float64(v.Tally.Servers[podName(b.Pod)]) / float64(max(v.Tally.Outcomes[traffic.OK], 1))
	}
	ofDialled := func(text func(api.Backend) string) func(api.Backend) string {
		return func(b api.Backend) string {
			if !dialled(b) {
				return ""
			}
			return text(b)
		}
	}
	return []screen.Column[api.Backend]{
		{Title: "SERVICE", Value: func(b api.Backend) string { return b.Service + ":" + b.Port }},
		{Title: "BACKEND", Value: func(b api.Backend) string { return podName(b.Pod) }},
		{Title: "NODE", Value: func(b api.Backend) string { return b.Node }},
		{Title: "ADDRESS", Value: func(b api.Backend) string { return b.Address }},
		{Title: "FLOWS", Right: true, Value: func(b api.Backend) string { return fmt.Sprint(b.Flows) }},
		{Title: "EXPECT", Right: true, Value: v.expected},
		{Title: "SHARE", Right: true, Value: ofDialled(func(b api.Backend) string { return fmt.Sprintf("%.1f%%", 100*share(b)) })},
		{Title: "NEW/s", Right: true, Value: ofDialled(func(b api.Backend) string { return fmt.Sprint(v.Tally.Servers[podName(b.Pod)]) })},
		{Title: " ", Value: ofDialled(func(b api.Backend) string { return strings.Repeat("█", int(barWidth*share(b)+0.5)) + " " })},
	}
}

// expected is the share that a backend should have, or why it has none.
func (v View) expected(b api.Backend) string {
	if !b.Used {
		return b.Why
	}
	used := 0
	for _, other := range v.Backends {
		if other.Used && other.Service == b.Service && other.Namespace == b.Namespace && other.Port == b.Port {
			used++
		}
	}
	return fmt.Sprintf("%.1f%%", 100/float64(used))
}

func podName(pod string) string { return pod[strings.LastIndex(pod, "/")+1:] }

func (v View) outcomes(p screen.Paint) string {
	var parts []string
	for _, o := range slices.Sorted(maps.Keys(v.Tally.Outcomes)) {
		text := fmt.Sprintf("%d %s", v.Tally.Outcomes[o], o)
		if o != traffic.OK {
			text = p.Bad(text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func (v View) drops() string {
	var parts []string
	for _, d := range v.Drops {
		if d.Packets > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", d.Reason, d.Packets))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " · ")
}
