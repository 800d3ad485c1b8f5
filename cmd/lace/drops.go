package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newGetDrops lists drops and tells people which of them are no traffic of theirs.
func newGetDrops(n *node) *cobra.Command {
	foreign, policed := false, false
	var holes []api.BlackHole
	cmd := listing(n, "drops", "Packets dropped or refused, by reason", dropColumns,
		func(c *api.Client, ctx context.Context) (api.List[api.Drop], error) {
			list, err := c.Drops(ctx)
			holes = nil
			for _, d := range list.Items {
				holes = append(holes, d.BlackHoles...)
				policed = policed || d.Reason == reason.Policed.String()
				foreign = foreign || d.Reason == reason.ForeignFrame.String()
			}
			return list, err
		})
	cmd.PostRun = func(cmd *cobra.Command, _ []string) {
		for _, h := range holes {
			screen.Printf(cmd.ErrOrStderr(), "%s\n", lostWords(&h, time.Now()))
		}
		if policed {
			fmt.Fprintln(cmd.ErrOrStderr(), "policed: somebody asks for more than his share; the column POLICED of `lace get ports` says who.")
		}
		if foreign {
			fmt.Fprintln(cmd.ErrOrStderr(), "foreign-frame: no packet to a Service; usually IPv6 housekeeping that the kernel itself sends on lace0.")
		}
	}
	return cmd
}

// lostWords tell whose packets vanish, and where.
func lostWords(h *api.BlackHole, now time.Time) string {
	return fmt.Sprintf("black hole: %d packets of up to %d bytes, %s from %s (%s) to %s, do not fit %s with an MTU of %d; the last one %s ago.",
		h.Packets, h.Longest, h.Protocol, h.Source, h.In, h.Destination, h.Device, h.MTU, now.Sub(h.Seen).Round(time.Second))
}
