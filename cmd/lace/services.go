package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newGetServices lists Services, a line for each of their ports.
func newGetServices(n *node) *cobra.Command {
	var format screen.Format
	var which selection
	cmd := &cobra.Command{
		Use:     "services [SERVICE]",
		Aliases: []string{"service", "svc"},
		Short:   "Services as resolved for this node",
		Long:    "Services as resolved for this node.\n" + selectionHelp,
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			c := n.client()
			defer c.Close()
			sayIfSimulated(cmd, c)
			list, err := c.Services(cmd.Context())
			if err != nil {
				return err
			}
			some := len(list.Items) > 0
			list.Items = slices.DeleteFunc(list.Items, func(s api.Service) bool { return !which.has(s.Namespace, s.Name) })
			if some && len(list.Items) == 0 {
				return fmt.Errorf("no Service %s: lace get services lists all", which)
			}
			if err := sayIfUnpublished(cmd, c, len(list.Items), format); err != nil {
				return err
			}
			if choosesNoPort(list.Items) && !format.ForPrograms() {
				defer sayNoPort(cmd)
			}
			return show(cmd, format, serviceColumns, list, servicePorts(list.Items), "services")
		}),
	}
	which.flags(cmd)
	formatFlag(cmd, &format)
	return cmd
}

// selection is what people want to see of all Services; empty: all of them.
type selection struct{ namespace, name string }

const selectionHelp = "SERVICE, a name or namespace/name, shows those of one Service only, --namespace those of one\nnamespace."

// flags has the command take a Service and --namespace.
func (s *selection) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.namespace, "namespace", "n", "", "only this namespace; empty: all")
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		s.name = args[0]
		namespace, name, both := strings.Cut(args[0], "/")
		switch {
		case !both:
		case s.namespace != "" && s.namespace != namespace:
			return fmt.Errorf("%s is not in namespace %s: leave one of the two out", args[0], s.namespace)
		default:
			s.namespace, s.name = namespace, name
		}
		return nil
	}
}

func (s *selection) has(namespace, name string) bool {
	return (s.namespace == "" || s.namespace == namespace) && (s.name == "" || s.name == name)
}

func (s selection) String() string {
	switch {
	case s.namespace == "":
		return s.name
	case s.name == "":
		return "in namespace " + s.namespace
	}
	return s.namespace + "/" + s.name
}

// newGetBackends lists endpoints, of one Service where one is named.
func newGetBackends(n *node) *cobra.Command {
	var which selection
	lost := false
	cmd := listing(n, "backends", "Endpoints of every Service port, and whether new connections go there", backendColumns,
		func(c *api.Client, ctx context.Context) (api.List[api.Backend], error) {
			list, err := c.Backends(ctx)
			if err != nil || len(list.Items) == 0 {
				return list, err
			}
			list.Items = slices.DeleteFunc(list.Items, func(b api.Backend) bool { return !which.has(b.Namespace, b.Service) })
			lost = slices.ContainsFunc(list.Items, func(b api.Backend) bool { return b.NoPort && b.Why == "" })
			if len(list.Items) == 0 {
				return list, fmt.Errorf("no Service %s has endpoints: see lace get services", which)
			}
			return list, nil
		})
	cmd.Use = "backends [SERVICE]"
	cmd.PostRun = func(cmd *cobra.Command, _ []string) {
		if lost {
			sayNoPort(cmd)
		}
	}
	cmd.Long = "Endpoints of every Service port, and whether new connections go there.\n" + selectionHelp
	which.flags(cmd)
	return cmd
}
