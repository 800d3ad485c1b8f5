package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newExplain asks what would become of a packet.
func newExplain() *cobra.Command {
	n := &node{}
	var format screen.Format
	var from, to string
	cmd := &cobra.Command{
		Use:   "explain --from POD|DEVICE|IP|host --to IP:PORT/PROTO",
		Short: "Say step by step what becomes of a packet, and why",
		Long: "explain sends a made-up packet through the production pipeline of the node, on its\n" +
			"present tables. Nothing leaves the node and no flow is registered. The backend is\n" +
			"chosen at random each time, as for a real connection.\n\n" +
			"Lace knows by name only pods that are endpoints of a Service. Of another pod, say the\n" +
			"address, or its device on the node: `lace get ports` lists both.",
		Example: "  lace explain --from shopper --to 10.96.0.10:80/tcp\n" +
			"  lace explain --from fd30::100 --to '[fd00:10:96::10]:80/udp'",
		Args: cobra.NoArgs,
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			c := n.client()
			defer c.Close()
			sayIfSimulated(cmd, c)
			e, err := c.Explain(cmd.Context(), from, to)
			if err != nil {
				return err
			}
			if format.ForPrograms() {
				return screen.Encode(cmd.OutOrStdout(), format, e)
			}
			return writeExplanation(cmd.OutOrStdout(), format, e)
		}),
	}
	n.flag(cmd)
	formatFlag(cmd, &format)
	cmd.Flags().StringVar(&from, "from", "", "the pod of an endpoint (name or namespace/name), a pod's device, an address, or host")
	cmd.Flags().StringVar(&to, "to", "", "destination: address:port/protocol")
	cmd.MarkFlagRequired("from")
	cmd.MarkFlagRequired("to")
	return cmd
}

var stepColumns = []screen.Column[api.Step]{
	{Title: "STEP", Value: func(s api.Step) string { return s.Stage }},
	{Title: "WHAT", Value: func(s api.Step) string { return s.Text }},
}

// writeExplanation writes question, steps, verdict, and flows that are there already:
// those keep their backend whatever the steps say. Without a fast path that comes first.
func writeExplanation(w io.Writer, f screen.Format, e api.Explanation) error {
	if e.FastpathDown != "" {
		screen.Printf(w, "DOWN: %s\n", e.FastpathDown)
	}
	screen.Printf(w, "%s to %s, as %s on %s, tables of generation %d\n\n", e.From, e.To, e.Source, e.Port, e.Generation)
	if err := screen.WriteTable(w, f, stepColumns, stepsBeforeVerdict(e)); err != nil {
		return err
	}
	screen.Printf(w, "\n%s: %s. %s.\n", e.Verdict, e.Reason, strings.TrimSuffix(e.Help, "."))
	if e.Backend != "" {
		screen.Printf(w, "backend this time: %s\n", strings.TrimSpace(e.Pod+" "+e.Backend))
	}
	for _, note := range e.Notes {
		screen.Printf(w, "note: %s\n", note)
	}
	if err := writeEligible(w, f, e); err != nil {
		return err
	}
	if len(e.Live) == 0 {
		return nil
	}
	screen.Printf(w, "\nregistered flows between the two, which keep their backend:\n")
	return screen.WriteTable(w, f, flowColumns, e.Live)
}

// stepsBeforeVerdict leaves out the last step, which the sentence below the table repeats.
func stepsBeforeVerdict(e api.Explanation) []api.Step {
	if n := len(e.Steps); n > 0 && e.Steps[n-1].Stage == "verdict" {
		return e.Steps[:n-1]
	}
	return e.Steps
}
