package main

import (
	"fmt"
	"io"
	"net"
	"strings"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// mostEndpoints is how many endpoints of a kind people are shown; programs get all.
const mostEndpoints = 20

// candidate is an endpoint that may be chosen, or why it may not.
type candidate struct {
	api.Endpoint
	may bool
	why string // it may not, or is of no use
}

var candidateColumns = []screen.Column[candidate]{
	{Title: "ENDPOINT", Value: func(c candidate) string { return net.JoinHostPort(c.Address, figure(c.Port)) }},
	{Title: "POD", Value: func(c candidate) string { return c.Pod }},
	{Title: "NODE", Value: func(c candidate) string { return c.Node }},
	{Title: "ZONE", Value: func(c candidate) string { return c.Zone }},
	{Title: "ELIGIBLE", Value: func(c candidate) string { return yes(c.may) }},
	{Title: "WHY-NOT", Value: func(c candidate) string { return c.why }},
}

// candidates are the endpoints of a choice, those that may be chosen first, and how many more
// there are of each kind.
func candidates(c *api.Choice) (out []candidate, more, moreOut int) {
	for _, e := range c.Endpoints[:min(mostEndpoints, len(c.Endpoints))] {
		out = append(out, candidate{e, true, portless(e.NoPort)})
	}
	for _, x := range c.Excluded[:min(mostEndpoints, len(c.Excluded))] {
		out = append(out, candidate{x.Endpoint, false, x.Reason})
	}
	return out, max(0, len(c.Endpoints)-mostEndpoints), max(0, len(c.Excluded)-mostEndpoints)
}

// writeEligible writes among which endpoints the choice is.
func writeEligible(w io.Writer, f screen.Format, e api.Explanation) error {
	if e.Eligible == nil {
		return nil
	}
	screen.Printf(w, "\nendpoints of %s for %s: %d of %d, chosen by %s%s\n", e.Service, e.Whose,
		len(e.Eligible.Endpoints), len(e.Eligible.Endpoints)+len(e.Eligible.Excluded), e.Eligible.Tier, inBrackets(e.Eligible.Notes))
	lines, more, moreOut := candidates(e.Eligible)
	if len(lines) == 0 {
		return nil
	}
	if err := screen.WriteTable(w, f, candidateColumns, lines); err != nil {
		return err
	}
	if more+moreOut > 0 {
		screen.Printf(w, "and %d more that are eligible, %d more that are not: -o json has all\n", more, moreOut)
	}
	return nil
}

func inBrackets(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, ", ") + ")"
}

// fewest endpoints are named in a line of a list.
const fewest = 4

// names of a choice's endpoints, the first few.
func eligibleNames(c *api.Choice) string {
	var out []string
	for _, e := range c.Endpoints[:min(fewest, len(c.Endpoints))] {
		out = append(out, net.JoinHostPort(e.Address, figure(e.Port))+inParens(portless(e.NoPort)))
	}
	if n := len(c.Endpoints) - fewest; n > 0 {
		out = append(out, fmt.Sprintf("+%d", n))
	}
	return strings.Join(out, " ")
}

// excludedCounts says how many endpoints are out for each reason, in the order in which the
// reasons come.
func excludedCounts(c *api.Choice) string {
	counts := map[string]int{}
	var order []string
	for _, x := range c.Excluded {
		if counts[x.Reason]++; counts[x.Reason] == 1 {
			order = append(order, x.Reason)
		}
	}
	for i, reason := range order {
		order[i] = fmt.Sprintf("%d %s", counts[reason], reason)
	}
	return strings.Join(order, " ")
}
