package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newGetStatus shows whether the node does what it is told, and what it had to put right.
func newGetStatus(n *node) *cobra.Command {
	var format screen.Format
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Whether the node goes by what was published, and what was put right",
		Args:  cobra.NoArgs,
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			c := n.client()
			defer c.Close()
			sayIfSimulated(cmd, c)
			s, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			if format.ForPrograms() {
				err = screen.Encode(cmd.OutOrStdout(), format, s)
			} else {
				err = screen.WriteTable(cmd.OutOrStdout(), format, factColumns, facts(&s))
			}
			if err == nil && !s.Ready {
				return errSaid
			}
			return err
		}),
	}
	formatFlag(cmd, &format)
	return cmd
}

// fact is one line of the table.
type fact struct{ what, state string }

var factColumns = []screen.Column[fact]{
	{Title: "WHAT", Value: func(f fact) string { return f.what }},
	{Title: "STATE", Value: func(f fact) string { return f.state }},
}

func facts(s *api.Status) []fact {
	ready := "yes"
	if !s.Ready {
		ready = "no: " + waiting(s)
	}
	return []fact{
		{"ready", ready},
		{"fast path", fastpathFact(s)},
		{"generation", fmt.Sprintf("%d in use, %d published", s.Generation.InUse, s.Generation.Published)},
		{"flows", fmt.Sprintf("%d open, %d registered, room for %d", s.Fastpath.Open, max(s.Fastpath.Flows, s.Fastpath.Open), s.Fastpath.FlowsMax)},
		{"own node ports", socketsFact(&s.Fastpath)},
		{"problems", problemsFact(s.Objects.Problems)},
		{"put right", repairsFact(s.Repairs)},
	}
}

// waiting is why the node is not ready, unless the next line says it.
func waiting(s *api.Status) string {
	if s.Waiting == s.Fastpath.Message {
		return "new connections need the fast path"
	}
	return s.Waiting
}

func fastpathFact(s *api.Status) string {
	f := &s.Fastpath
	if s.Simulated && f.Alive {
		return "simulated: runs in memory, as no process of its own"
	}
	if !f.Alive {
		return f.Message
	}
	took := time.Duration(f.StartSeconds * float64(time.Second)).Round(time.Millisecond)
	text := fmt.Sprintf("process %d since %s, was ready after %s", f.PID, f.Started.Format(time.DateTime), took)
	if f.Message != "" {
		text += "; " + f.Message
	}
	return text
}

// socketsFact says whether the node's own processes reach its own addresses by Services.
func socketsFact(f *api.Fastpath) string {
	switch f.Sockets {
	case "":
		return "unknown"
	case api.SocketsAttached:
		return "reached by the node's own processes"
	}
	return "not reached by the node's own processes: " + f.Sockets
}

func problemsFact(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: lace get problems", n)
}

// repairsFact names what was put right, each with how often.
func repairsFact(all map[string]uint64) string {
	var words []string
	for _, what := range slices.Sorted(maps.Keys(all)) {
		if all[what] > 0 {
			words = append(words, fmt.Sprintf("%s %d", what, all[what]))
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}
