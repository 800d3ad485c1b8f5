package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newGetDrops lists drops and tells people which of them are no traffic of theirs.
func newGetDrops(n *node) *cobra.Command {
	foreign, policed := false, false
	cmd := listing(n, "drops", "Packets dropped or refused, by reason", dropColumns,
		func(c *api.Client, ctx context.Context) (api.List[api.Drop], error) {
			list, err := c.Drops(ctx)
			for _, d := range list.Items {
				policed = policed || d.Reason == reason.Policed.String()
				foreign = foreign || d.Reason == reason.ForeignFrame.String()
			}
			return list, err
		})
	cmd.PostRun = func(cmd *cobra.Command, _ []string) {
		if policed {
			fmt.Fprintln(cmd.ErrOrStderr(), "policed: somebody asks for more than his share; the column POLICED of `lace get ports` says who.")
		}
		if foreign {
			fmt.Fprintln(cmd.ErrOrStderr(), "foreign-frame: no packet to a Service; usually IPv6 housekeeping that the kernel itself sends on lace0.")
		}
	}
	return cmd
}
