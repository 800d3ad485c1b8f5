package manifests

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/slowpath/source/dir"
)

// Config is what an agent is told beside the folder.
type Config struct {
	Node   string         // name of the node to judge for; empty: the first Node in the folder, else the host name
	Ranges []netip.Prefix // service ranges; nil: those that ServiceCIDRs in the folder declare
}

// Judgement is what a folder comes to.
type Judgement struct {
	Node     string              // that it was judged for
	Objects  map[source.Kind]int // how many were taken
	Problems []model.Problem     // that an agent would have: those without a place, then by place
	Places   dir.Places          // of these
}

// Judge reads the folder at path and says which Problems an agent on that node would have. It
// returns an error when the folder cannot be read or holds nothing that would be, or when ctx ends first.
func Judge(ctx context.Context, path string, c Config) (*Judgement, error) {
	reading, err := dir.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	if reading.Files == 0 {
		return nil, fmt.Errorf("the folder %s holds no *.yaml, *.yml or *.json: hidden files, other names and sub-folders are not looked at; name the folder that holds them", path)
	}
	out := &Judgement{Objects: map[source.Kind]int{}, Places: reading.Places}
	if out.Node, err = nodeName(c.Node, reading.Objects); err != nil {
		return nil, err
	}
	var changes []source.Change
	for _, o := range reading.Objects {
		out.Objects[o.Kind]++
		changes = append(changes, source.Change{Kind: o.Kind, Name: o.Name, Object: o.Object})
	}
	out.Problems, err = publish.Rehearse(ctx,
		publish.Config{Node: out.Node, Ranges: c.Ranges, At: everywhere, AgentPorts: []uint16{probesPort}},
		changes, reading.Problems, attachments(out.Node, reading.Objects))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out.Problems, func(a, b model.Problem) int {
		return comparePlaces(out.Places.Of(a), out.Places.Of(b))
	})
	return out, nil
}

// comparePlaces puts places in the order in which they are read. Items come before lines: an
// item that is read has the line of its list.
func comparePlaces(a, b source.Place) int {
	return cmp.Or(
		cmp.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document),
		cmp.Compare(len(a.Item), len(b.Item)), cmp.Compare(a.Item, b.Item), // items[9] before items[10]
		cmp.Compare(a.Line, b.Line))
}
