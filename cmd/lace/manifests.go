package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"lace-cni.io/lace/cmd/lace/preflight"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/adminserver"
	"lace-cni.io/lace/slowpath/manifests"
	"lace-cni.io/lace/slowpath/source"
)

// manifestsFolder is a folder to be checked, with what an agent is told beside it: the flags
// have the names and the meaning of lace-agent's.
type manifestsFolder struct {
	path   string
	node   string
	ranges serviceRanges
}

const flagSourceDir, flagServiceCIDRs, flagNodeName = "source-dir", "service-cidrs", "node-name"

func (m *manifestsFolder) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.path, flagSourceDir, "", "check this folder of YAML instead of the machine")
	cmd.Flags().Var(&m.ranges, flagServiceCIDRs, "with --source-dir: service ranges, separated by commas, that the agent will be given (default: as ServiceCIDRs in the folder declare them)")
	cmd.Flags().StringVar(&m.node, flagNodeName, "", "with --source-dir: name of the node to check for (default: the first Node in the folder, else the host name)")
}

// judge refuses flags that make no sense.
func (m *manifestsFolder) judge(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if given(flagSourceDir) && m.path == "" {
		return errors.New("--source-dir is empty: name the folder that holds the YAML files")
	}
	for _, name := range []string{flagServiceCIDRs, flagNodeName} {
		if given(name) && m.path == "" {
			return fmt.Errorf("--%s is about a folder: name it with --source-dir", name)
		}
	}
	if m.node != "" {
		if wrong := validation.IsDNS1123Subdomain(m.node); len(wrong) > 0 {
			return fmt.Errorf("--node-name %q: no Node can have this name: %s", m.node, strings.Join(wrong, "; "))
		}
	}
	return resolve.JudgeRanges(m.ranges)
}

// check says what is wrong in the folder.
func (m *manifestsFolder) check(cmd *cobra.Command, f screen.Format) error {
	j, err := manifests.Judge(cmd.Context(), m.path, manifests.Config{Node: m.node, Ranges: m.ranges})
	if err != nil {
		return fmt.Errorf("--source-dir: %w", err)
	}
	findings := []preflight.Finding{{Verdict: preflight.OK, Check: "problems", Found: "none"}}
	if len(j.Problems) > 0 {
		findings = findings[:0]
	}
	for i := range j.Problems {
		findings = append(findings, judged(j, i))
	}
	if err := writeFindings(cmd.OutOrStdout(), f, findings, comesTo(j)); err != nil {
		return err
	}
	if len(j.Problems) > 0 {
		return errSaid
	}
	return nil
}

// judged is the finding of a Problem that an agent would have. Of a file it is checked at the file.
func judged(j *manifests.Judgement, i int) preflight.Finding {
	p := adminserver.ProblemOf(j.Problems[i], j.Places.Of(j.Problems[i]))
	check, do := "problem", ""
	switch {
	case p.Kind == "File":
		check = p.Object
	case p.Reason == "NoServiceRanges": // of the command line, and of nothing in the folder
		check, do = "--"+flagServiceCIDRs, "where lace-agent is given --service-cidrs, give the same to lace check --source-dir"
	}
	out := preflight.OfProblem(preflight.Fail, check, &p)
	out.Do = do
	return out
}

// comesTo is what was read, and how many Problems there are.
func comesTo(j *manifests.Judgement) string {
	var words []string
	for _, k := range []source.Kind{source.Service, source.EndpointSlice, source.Node, source.ServiceCIDR} {
		words = append(words, counted(j.Objects[k], string(k)))
	}
	problems := "no Problems"
	if n := len(j.Problems); n > 0 {
		problems = counted(n, "Problem")
	}
	return fmt.Sprintf("%s, for node %s: %s.", strings.Join(words, ", "), j.Node, problems)
}

// serviceRanges is a list of prefixes in one flag.
type serviceRanges []netip.Prefix

// String, Set and Type make it a flag (pflag.Value). A later flag replaces an earlier one.
func (r *serviceRanges) String() string {
	var out []string
	for _, p := range *r {
		out = append(out, p.String())
	}
	return strings.Join(out, ",")
}

func (r *serviceRanges) Set(s string) (err error) {
	*r, err = resolve.ParseRanges(s)
	return err
}

func (r *serviceRanges) Type() string { return "prefixes" }
