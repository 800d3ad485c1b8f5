package matrix

import (
	"fmt"
	"slices"
	"strings"

	"lace-cni.io/lace/fastpath/reason"
)

// Page is docs/reference/packet-matrix.md.
func Page(cases []Case) string {
	var b strings.Builder
	b.WriteString(`# Packet matrix

<!-- Written by go generate in fastpath/pipeline/matrix from its testdata. Do not edit. -->

What becomes of each kind of packet, cell by cell. The cases are data in
[fastpath/pipeline/matrix/testdata](../../fastpath/pipeline/matrix/testdata); the pipeline alone and the
running process, with real devices, are both held to each of them.

`)
	writeDimensions(&b, len(cases))
	writeImpossible(&b)
	b.WriteString(`
## Served

The first packet of a client, and the first of its backend. What comes behind them becomes the
same; while the lane is on the kernel carries it for TCP and UDP, all but the client's second packet of UDP and, the uplink being a wire, of TCP within the node,
and Go for SCTP, whose checksum the kernel cannot mend. Cells in which all is alike share a row. ` + "`*`" + ` is a port of the node's range; ` + "`vip`" + ` is the address of the frontend and the port that leads to the backend in
question; every backend listens on port 8080.

`)
	writeRows(&b, cases, "| Protocol | Frontend | Client > backend | Delivery | Packet | Becomes | Reply | Becomes |", servedRow)
	b.WriteString("\n## Errors about packets of a flow\n\nPort unreachable about the other end's last packet, by the backend and by the client.\n\n")
	writeRows(&b, cases, "| Frontend | Client > backend | Delivery | The backend's error | Becomes | The client's error | Becomes |", errorRow)
	b.WriteString("\n## Refused\n\n")
	writeRows(&b, cases, "| Protocol | Frontend | Target | Client | Packet | Reason | Becomes |", refusedRow)
	return b.String()
}

func writeDimensions(b *strings.Builder, n int) {
	fmt.Fprintf(b, "| Dimension | Values |\n| --- | --- |\n")
	for _, d := range dimensions {
		fmt.Fprintf(b, "| %s | %s |\n", d.name, strings.Join(d.values, ", "))
	}
	fmt.Fprintf(b, "\n%d combinations, of which %d are possible. ", len(Cells()), n)
	b.WriteString("A client is a pod of this node, the node itself or somebody outside;\na backend is the client itself, a pod of this node, an endpoint on its host network, or a pod of\nanother node. An external address is an externalIP or a load balancer's; the two are one to the fast path.\n")
}

func writeImpossible(b *strings.Builder) {
	count := map[*Rule]int{}
	for _, c := range Cells() {
		count[Impossible(c)]++
	}
	b.WriteString("\n## Impossible\n\nThe first rule that holds a cell says why there is no such packet.\n\n| Cells | Why | How many |\n| --- | --- | --- |\n")
	for i := range Rules {
		fmt.Fprintf(b, "| %s | %s | %d |\n", Rules[i].Cells, Rules[i].Why, count[&Rules[i]])
	}
}

// row is what a case says, apart from the protocol and frontend for which it says so.
type row struct{ protocol, frontend, rest string }

// writeRows writes a table of rows; those that differ in protocol or frontend only are one.
func writeRows(b *strings.Builder, cases []Case, head string, of func(*Case) (row, bool)) {
	var order []string
	protocols, frontends := map[string][]string{}, map[string][]string{}
	for i := range cases {
		r, ok := of(&cases[i])
		if !ok {
			continue
		}
		if !slices.Contains(order, r.rest) {
			order = append(order, r.rest)
		}
		protocols[r.rest], frontends[r.rest] = with(protocols[r.rest], r.protocol), with(frontends[r.rest], r.frontend)
	}
	fmt.Fprintf(b, "%s\n|%s\n", head, strings.Repeat(" --- |", strings.Count(head, "|")-1))
	for _, rest := range order {
		b.WriteString("|")
		if p := strings.Join(protocols[rest], ", "); p != "" {
			fmt.Fprintf(b, " %s |", p)
		}
		fmt.Fprintf(b, " %s | %s |\n", strings.Join(frontends[rest], ", "), rest)
	}
}

func with(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// servedRow is the same whether the lane is on or off.
func servedRow(c *Case) (row, bool) {
	if c.Target != "served" || c.Protocol == "icmp-error" {
		return row{}, false
	}
	n := slices.IndexFunc(c.Steps, func(s Step) bool { return s.Reason == reason.Reply })
	if n < 1 {
		return row{}, false
	}
	there, back := &c.Steps[n-1], &c.Steps[n]
	return row{c.Protocol, c.Frontend, strings.Join([]string{
		c.Client + " > " + c.Backend, c.Delivery,
		c.symbols(there.Met, there.Egress, &there.In), c.leaves(there), c.symbols(back.Met, back.Egress, &back.In), c.leaves(back),
	}, " | ")}, true
}

func errorRow(c *Case) (row, bool) {
	if c.Target != "served" || c.Protocol != "icmp-error" {
		return row{}, false
	}
	n := len(c.Steps)
	back, there := &c.Steps[n-2], &c.Steps[n-1]
	return row{"", c.Frontend, strings.Join([]string{
		c.Client + " > " + c.Backend, c.Delivery,
		c.symbols(back.Met, back.Egress, &back.In), c.leaves(back), c.symbols(there.Met, there.Egress, &there.In), c.leaves(there),
	}, " | ")}, true
}

func refusedRow(c *Case) (row, bool) {
	if c.Target == "served" {
		return row{}, false
	}
	s := &c.Steps[0]
	return row{c.Protocol, c.Frontend, strings.Join([]string{
		c.Target, c.Client, c.symbols(s.Met, s.Egress, &s.In), "`" + s.Reason.String() + "`", c.leaves(s),
	}, " | ")}, true
}

// symbols is a packet with vip and client in the place of what differs between cells.
func (c *Case) symbols(met string, egress bool, p *Packet) string {
	way := "in"
	if egress {
		way = "out"
	}
	return fmt.Sprintf("%s %s: %s", way, met, c.packet(p))
}

func (c *Case) packet(p *Packet) string {
	s := fmt.Sprintf("%s > %s", c.symbol(p.Src), c.symbol(p.Dst))
	if p.About != nil {
		s += fmt.Sprintf(", about %s > %s", c.symbol(p.About.Src), c.symbol(p.About.Dst))
	}
	switch p.Kind {
	case "reset", "refusal":
		s = p.Kind + " " + s
	}
	return s
}

func (c *Case) leaves(s *Step) string {
	if s.Verdict == "drop" {
		return "dropped"
	}
	hops := ""
	if s.Out.TTL != s.In.TTL && s.Verdict == "forward" {
		hops = ", a hop less"
	}
	return fmt.Sprintf("%s %s: %s%s", s.How, s.Via, c.packet(&s.Out), hops)
}

func (c *Case) symbol(e Endpoint) string {
	frontend := map[string]string{"cluster": "cluster", "external": "external", "nodeport": "node"}[c.Frontend]
	place := e.Place
	if place == frontend && !(place == "node" && (e.Any || e.Port == 0 || e.Port == 8080)) {
		place = "vip"
	}
	switch {
	case e.Any:
		return place + ":*"
	case e.Port == c.Label():
		return place + ":client"
	case e.Port == 8080:
		return place + ":8080"
	case e.Port != 0:
		return place + ":port"
	}
	return place
}
