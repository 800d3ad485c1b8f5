package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newGetFlows lists flows, of which there may be very many.
func newGetFlows(n *node) *cobra.Command {
	limit, all := api.DefaultFlows, false
	cmd := listing(n, "flows", "Registered connections that are open", flowColumns,
		func(c *api.Client, ctx context.Context) (api.List[api.Flow], error) {
			if all {
				return c.Flows(ctx, limit)
			}
			return c.OpenFlows(ctx, limit)
		})
	cmd.Flags().IntVar(&limit, "limit", limit, fmt.Sprintf("most flows to list, 1 to %d", api.MaxFlows))
	cmd.Flags().BoolVar(&all, "all", false, "closed connections too, which stay registered for a while")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if limit < 1 || limit > api.MaxFlows {
			return fmt.Errorf("--limit %d: say 1 to %d", limit, api.MaxFlows)
		}
		return nil
	}
	return cmd
}
