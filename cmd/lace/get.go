package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newGet lists what a node has.
func newGet() *cobra.Command {
	n := &node{}
	get := &cobra.Command{
		Use:   "get",
		Short: "List what the node's Lace has",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	n.flag(get)
	get.AddCommand(
		newGetServices(n),
		newGetBackends(n),
		newGetFlows(n),
		newGetDrops(n),
		newGetLane(n),
		newGetStatus(n),
		listing(n, "ports", "Devices through which packets of Services come and go", portColumns, (*api.Client).Ports),
		listing(n, "problems", "What could not be honoured, and what to do", problemColumns, (*api.Client).Problems),
	)
	return get
}

// asks is a question with a list as answer.
type asks[T any] func(*api.Client, context.Context) (api.List[T], error)

// listing is a command that shows the answer to one question.
func listing[T any](n *node, name, short string, columns []screen.Column[T], ask asks[T]) *cobra.Command {
	var format screen.Format
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			c := n.client()
			defer c.Close()
			sayIfSimulated(cmd, c)
			list, err := ask(c, cmd.Context())
			if err != nil {
				return err
			}
			if slices.Contains(published, name) {
				if err := sayIfUnpublished(cmd, c, len(list.Items), format); err != nil {
					return err
				}
			}
			return show(cmd, format, columns, list, list.Items, name)
		}),
	}
	formatFlag(cmd, &format)
	return cmd
}

// show writes a list: to programs as the agent gave it, to people as lines. People are
// told when there is nothing, or not everything.
func show[T, L any](cmd *cobra.Command, f screen.Format, columns []screen.Column[L], list api.List[T], lines []L, name string) error {
	if f.ForPrograms() {
		return screen.Encode(cmd.OutOrStdout(), f, list)
	}
	if list.Closed > 0 {
		defer fmt.Fprintf(cmd.ErrOrStderr(), "%d closed %s are not shown: --all lists them.\n", list.Closed, name)
	}
	if len(lines) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "No %s.\n", name)
		return nil
	}
	if err := screen.WriteTable(cmd.OutOrStdout(), f, columns, lines); err != nil {
		return err
	}
	if list.Truncated {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are more %s than these %d.\n", name, len(lines))
	}
	return nil
}

// published are the lists of what was published. Services, which have a command of their own, are
// one too; flows, drops and Problems may be there before.
var published = []string{"backends", "ports"}

// sayIfUnpublished tells people who see an empty list that there cannot be anything in it yet:
// nothing has been published. To programs the list says it.
func sayIfUnpublished(cmd *cobra.Command, c *api.Client, items int, f screen.Format) error {
	if items > 0 || f.ForPrograms() {
		return nil
	}
	s, err := c.Status(cmd.Context())
	if err != nil || s.Generation.Published > 0 || s.Simulated {
		return nil // the list itself says that there is nothing
	}
	return errors.New("nothing has been published yet: lace get status says what the node waits for")
}
