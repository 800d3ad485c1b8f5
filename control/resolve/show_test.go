package resolve_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"lace-cni.io/lace/control/model"
)

// decode reads YAML without the defaults or the validation of an API server.
func decode[T any](t testing.TB, text string) *T {
	t.Helper()
	var v T
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("test object: %v\n%s", err, text)
	}
	return &v
}

func decodeSlices(t testing.TB, texts []string) (out []*discoveryv1.EndpointSlice) {
	t.Helper()
	for _, s := range texts {
		out = append(out, decode[discoveryv1.EndpointSlice](t, s))
	}
	return out
}

func decodeService(t testing.TB, text string) *corev1.Service {
	t.Helper()
	return decode[corev1.Service](t, text)
}

// show writes a Service and its Problems the way the cases below expect them.
func show(s *model.Service, problems []model.Problem) string {
	var b strings.Builder
	if s == nil {
		b.WriteString("not proxied\n")
	} else {
		showService(&b, s)
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "! %s %s %s %s\n", p.Kind, p.Object, p.Field, p.Reason)
	}
	return b.String()
}

func showService(b *strings.Builder, s *model.Service) {
	fmt.Fprintf(b, "%s %s internal=%s external=%s", s.Name, s.Type, s.InternalPolicy, s.ExternalPolicy)
	if s.Distribution != model.ByHints {
		fmt.Fprintf(b, " %s", s.Distribution)
	}
	if s.Affinity > 0 {
		fmt.Fprintf(b, " affinity=%ds", s.Affinity)
	}
	for _, fam := range []int{4, 6} {
		if from, ok := s.Sources[fam]; ok {
			fmt.Fprintf(b, " from%d=%s", fam, joined(from))
		}
	}
	b.WriteString("\n")
	for _, p := range s.Ports {
		fmt.Fprintf(b, "port %q %d/%s\n", p.Name, p.Port, p.Protocol)
		for _, f := range p.Frontends {
			fmt.Fprintf(b, "  %s %s %d\n", f.Kind, f.Addr, f.Port)
		}
		for _, fam := range []int{4, 6} {
			c, ok := p.Families[fam]
			if !ok {
				continue
			}
			showChoice(b, fmt.Sprintf("v%d internal", fam), c.Internal)
			if c.External.Tier != "" {
				showChoice(b, fmt.Sprintf("v%d external", fam), c.External)
				showChoice(b, fmt.Sprintf("v%d cluster", fam), c.Cluster)
			}
		}
	}
}

func showChoice(b *strings.Builder, title string, c model.Choice) {
	words := []string{title, c.Tier}
	for _, e := range c.Endpoints {
		words = append(words, fmt.Sprintf("%s:%d", e.Addr, e.Port))
	}
	for _, x := range c.Excluded {
		words = append(words, fmt.Sprintf("-%s:%d(%s)", x.Endpoint.Addr, x.Endpoint.Port, x.Reason))
	}
	fmt.Fprintf(b, "  %s\n", strings.Join(words, " "))
}

func joined(prefixes []netip.Prefix) string {
	if len(prefixes) == 0 {
		return "nobody"
	}
	var words []string
	for _, p := range prefixes {
		words = append(words, p.String())
	}
	return strings.Join(words, ",")
}

// lines drops the indentation of an expectation.
func lines(s string) string {
	in := strings.Split(strings.Trim(s, "\n"), "\n")
	depth := len(in[0]) - len(strings.TrimLeft(in[0], "\t"))
	for i, l := range in {
		in[i] = strings.TrimPrefix(l, strings.Repeat("\t", depth))
	}
	return strings.TrimRight(strings.Join(in, "\n"), "\t\n") + "\n"
}

func messages(problems []model.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return out
}
