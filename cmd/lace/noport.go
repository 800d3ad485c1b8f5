package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// noPort is the word for an endpoint of this node whose address is at none of its ports. It is
// used as any other, and reaches nobody.
const noPort = "no-port"

func portless(is bool) string {
	if is {
		return noPort
	}
	return ""
}

func inParens(word string) string {
	if word == "" {
		return ""
	}
	return "(" + word + ")"
}

// sayNoPort tells people on the side what the word means that they have just read.
func sayNoPort(cmd *cobra.Command) {
	fmt.Fprintln(cmd.ErrOrStderr(), "no-port: is chosen as ever, but no port of this node has its address, and what is sent there is lost; `lace get problems` says what to do.")
}

// choosesNoPort says whether new connections of some clients may go to an endpoint without a port.
func choosesNoPort(services []api.Service) bool {
	lost := func(c *api.Choice) bool {
		return slices.ContainsFunc(c.Endpoints, func(e api.Endpoint) bool { return e.NoPort })
	}
	for i := range services {
		for j := range services[i].Ports {
			for _, f := range services[i].Ports[j].Families {
				if lost(&f.Internal) || lost(&f.External) || lost(&f.Cluster) {
					return true
				}
			}
		}
	}
	return false
}
