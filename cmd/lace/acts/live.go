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
	Family    int // 4 or 6: the one that backends and connections are of
	Simulated bool
	Status    api.Status
	Backends  []api.Backend // of the family that is looked at
	Tally     traffic.Tally // of the last second's connections, by all clients
	PerSecond float64       // packets that Go decided
	Drops     []api.Drop
	Problems  []api.Problem
	Manifests string
	Tells     []string
	Error     error // why the picture is not complete
}

// watchEvery is how often the picture changes, familyFor how many pictures show one family.
const (
	watchEvery = time.Second
	familyFor  = 3
)

// Watch makes connections from every client over both families, and hands a View to show
// every second until ctx ends, whatever becomes of the connections.
func Watch(ctx context.Context, s Stage, show func(View)) {
	var before View
	calls := callAll(ctx, s)
	begin := time.Now()
	for i := 0; pause(ctx, watchEvery) == nil; i++ {
		family := 4 + 2*(i/familyFor%2)
		v := look(ctx, &scene{Stage: s, family: family})
		v.Tally = calls.take(family)
		calls.take(10 - family) // what nobody looks at must not pile up
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

// look asks the agent, for no longer than a picture lasts.
func look(ctx context.Context, s *scene) View {
	v := View{Label: s.Label(), Family: s.family, Simulated: s.Simulated(), Manifests: s.Manifests(), Tells: s.Tells()}
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
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
	if v.Drops, v.Error = s.Drops(ctx); v.Error == nil {
		v.Problems, v.Error = s.Problems(ctx)
	}
}

// barWidth is the length of the bar of a share of one.
const barWidth = 40

// Render writes the picture as text, a line each. Every line of a simulation says so.
func (v View) Render(p screen.Paint) string {
	var out strings.Builder
	g := v.Status.Generation
	fmt.Fprintf(&out, "%s · generation %d", p.Bold("lace demo · "+v.Label), g.InUse)
	if g.Programming > 0 {
		fmt.Fprintf(&out, " · programmed in %s", milliseconds(time.Duration(g.Programming*float64(time.Second))))
	}
	fmt.Fprintf(&out, "\n\n%s\n", p.Bold(fmt.Sprintf("IPv%d", v.Family)))
	screen.WriteTable(&out, screen.Table, v.columns(), v.Backends)
	fmt.Fprintf(&out, "\nCONNECTIONS %d over IPv%d ended in the last second%s\n", v.Tally.Attempts, v.Family, v.outcomes(p))
	f := v.Status.Fastpath
	fmt.Fprintf(&out, "PACKETS     %.0f/s through Go\nFLOWS       %d open, %d registered, room for %d\n", v.PerSecond, f.Open, f.Flows, f.FlowsMax)
	fmt.Fprintf(&out, "DROPS       %s\nPROBLEMS    %s\n\n", v.drops(), v.problems(p))
	if f.Message != "" {
		fmt.Fprintf(&out, "%s\n\n", p.Bad(screen.Plain(f.Message)))
	}
	if v.Error != nil {
		fmt.Fprintf(&out, "%s\n\n", p.Bad(screen.Plain(v.Error.Error())))
	}
	screen.Printf(&out, "edit and save: %s   [q] quit\n", v.Manifests)
	for _, text := range v.Tells {
		screen.Printf(&out, "%s\n", text)
	}
	if !v.Simulated {
		return out.String()
	}
	return marked(out.String(), p.Warn("SIMULATED")+" ")
}

// marked begins every line that says something with the mark.
func marked(text, mark string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			out.WriteString(mark)
		}
		out.WriteString(line)
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
	parts := []string{""}
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
			parts = append(parts, fmt.Sprintf("%s %d", screen.Plain(d.Reason), d.Packets))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " · ")
}

// maxProblem is how much of a Problem fits a line.
const maxProblem = 80

// problems counts them and shows the first one, which `lace get problems` tells in full.
func (v View) problems(p screen.Paint) string {
	if len(v.Problems) == 0 {
		return "none"
	}
	first := &v.Problems[0]
	text := []rune(strings.Join(strings.Fields(first.Object+" "+first.Field+" "+first.Message), " "))
	if len(text) > maxProblem {
		text = append(text[:maxProblem-1], '…')
	}
	return p.Bad(fmt.Sprintf("%d · %s", len(v.Problems), screen.Plain(string(text))))
}
