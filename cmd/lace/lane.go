package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newGetLane shows what the kernel does without Go.
func newGetLane(n *node) *cobra.Command {
	var format screen.Format
	cmd := &cobra.Command{
		Use:   "lane",
		Short: "What the kernel carries without Go, and why it leaves packets to Go",
		Args:  cobra.NoArgs,
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			c := n.client()
			defer c.Close()
			lane, err := c.Lane(cmd.Context())
			if err != nil {
				return err
			}
			if format.ForPrograms() {
				return screen.Encode(cmd.OutOrStdout(), format, lane)
			}
			fmt.Fprintln(cmd.OutOrStdout(), laneSummary(&lane))
			return screen.WriteTable(cmd.OutOrStdout(), format, laneColumns, laneCounts(&lane))
		}),
	}
	formatFlag(cmd, &format)
	return cmd
}

func laneSummary(l *api.Lane) string {
	switch {
	case l.Message != "":
		return "The connections cannot be read: " + l.Message
	case !l.On:
		return fmt.Sprintf("The lane is off: Go moves every packet of the %d registered connections.", l.Flows)
	}
	return fmt.Sprintf("The lane is on and carries %d of %d registered connections.", l.Installed, l.Flows)
}

// laneCount is one line of the table.
type laneCount struct {
	what, word, help string
	api.Amount
}

// laneCounts gives a line to hits, and to each cause and reason that has counted.
func laneCounts(l *api.Lane) []laneCount {
	out := []laneCount{{"hit", "", "Rewritten and delivered by the kernel", l.Hits}}
	for _, p := range l.Punts {
		if p.Packets > 0 {
			out = append(out, laneCount{"punt", p.Cause, p.Help, p.Amount})
		}
	}
	for _, d := range l.Drops {
		out = append(out, laneCount{"drop", d.Reason, d.Help, api.Amount{Packets: d.Packets, Bytes: d.Bytes}})
	}
	return out
}

var laneColumns = []screen.Column[laneCount]{
	{Title: "WHAT", Value: func(c laneCount) string { return c.what }},
	{Title: "WORD", Value: func(c laneCount) string { return c.word }},
	{Title: "PACKETS", Right: true, Value: func(c laneCount) string { return figure(c.Packets) }},
	{Title: "BYTES", Right: true, Value: func(c laneCount) string { return figure(c.Bytes) }},
	{Title: "MEANING", Wide: true, Value: func(c laneCount) string { return c.help }},
}
