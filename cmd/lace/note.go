package main

import (
	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// sayIfSimulated tells people on the side that no kernel stands behind the answer that
// follows. A status that cannot be had says nothing: the answer will fail as well.
func sayIfSimulated(cmd *cobra.Command, c *api.Client) {
	if st, err := c.Status(cmd.Context()); err == nil && st.Simulated {
		screen.Printf(cmd.ErrOrStderr(), "SIMULATED: node %s runs in memory, no kernel is involved\n", st.Node)
	}
}
