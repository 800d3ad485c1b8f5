package main

import (
	"fmt"
	"io"

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
			sayIfSimulated(cmd, c)
			lane, err := c.Lane(cmd.Context())
			if err != nil {
				return err
			}
			if format.ForPrograms() {
				err = screen.Encode(cmd.OutOrStdout(), format, lane)
			} else {
				err = writeLane(cmd.OutOrStdout(), format, &lane)
			}
			if err == nil && lane.Message != "" {
				err = fmt.Errorf("the connections cannot be read: %s", lane.Message)
			}
			return err
		}),
	}
	formatFlag(cmd, &format)
	return cmd
}

// writeLane writes what can be said about the connections, and the counts.
func writeLane(w io.Writer, f screen.Format, l *api.Lane) error {
	if l.Message == "" {
		screen.Printf(w, "%s\n", laneSummary(l))
	}
	return screen.WriteTable(w, f, laneColumns, laneCounts(l))
}

func laneSummary(l *api.Lane) string {
	if !l.On {
		return fmt.Sprintf("The lane is off: Go moves every packet of the %d open connections (%d registered).", l.Open, l.Flows)
	}
	return fmt.Sprintf("The lane is on and carries %d of %d open connections (%d of %d registered, closed ones among them).", l.OpenLane, l.Open, l.Installed, l.Flows)
}

// laneCount is one line of the table.
type laneCount struct {
	what, cause, help string
	api.Amount
}

// laneCounts gives a line to hits, and to each cause that has counted. Drops have a list
// of their own.
func laneCounts(l *api.Lane) []laneCount {
	out := []laneCount{{"hit", "", "Rewritten and delivered by the kernel", l.Hits}}
	for _, p := range l.Punts {
		if p.Packets > 0 {
			out = append(out, laneCount{"punt", p.Cause, p.Help, p.Amount})
		}
	}
	return out
}

var laneColumns = []screen.Column[laneCount]{
	{Title: "WHAT", Value: func(c laneCount) string { return c.what }},
	{Title: "CAUSE", Value: func(c laneCount) string { return c.cause }},
	{Title: "PACKETS", Right: true, Value: func(c laneCount) string { return figure(c.Packets) }},
	{Title: "BYTES", Right: true, Value: func(c laneCount) string { return figure(c.Bytes) }},
	{Title: "MEANING", Wide: true, Value: func(c laneCount) string { return c.help }},
}
