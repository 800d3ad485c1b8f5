package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newGetBackends lists endpoints, of one Service where one is named.
func newGetBackends(n *node) *cobra.Command {
	service := ""
	cmd := listing(n, "backends", "Endpoints of every Service port, and whether new connections go there", backendColumns,
		func(c *api.Client, ctx context.Context) (api.List[api.Backend], error) {
			list, err := c.Backends(ctx)
			if err != nil || service == "" {
				return list, err
			}
			list.Items = slices.DeleteFunc(list.Items, func(b api.Backend) bool {
				return b.Service != service && b.Namespace+"/"+b.Service != service
			})
			if len(list.Items) == 0 {
				return list, fmt.Errorf("no Service %s has endpoints: see lace get services", service)
			}
			return list, nil
		})
	cmd.Use = "backends [SERVICE]"
	cmd.Long = "Endpoints of every Service port, and whether new connections go there.\n" +
		"SERVICE, a name or namespace/name, shows those of one Service only."
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.PreRun = func(_ *cobra.Command, args []string) {
		if len(args) == 1 {
			service = args[0]
		}
	}
	return cmd
}
