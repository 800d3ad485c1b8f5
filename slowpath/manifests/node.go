package manifests

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/slowpath/source/dir"
)

// standIns are the addresses of a node whose Node object has none of the family: without any,
// nothing could be said of node ports.
var standIns = []netip.Addr{netip.MustParseAddr("192.0.2.254"), netip.MustParseAddr("2001:db8::254")}

// everywhere has node ports at every address of the node. Which ones an agent is told to take is
// no matter of the folder.
var everywhere = func() resolve.NodePorts {
	all, err := resolve.ParseNodePorts("all")
	if err != nil {
		panic(err)
	}
	return all
}()

// nodeName completes the name of the node to judge for.
func nodeName(given string, objects []dir.Object) (string, error) {
	if given != "" {
		return given, nil
	}
	for i := range objects { // by name
		if objects[i].Kind == source.Node {
			return objects[i].Name.Name, nil
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("--node-name is missing, there is no Node in the folder, and the host name cannot be read: %w", err)
	}
	return strings.ToLower(name), nil // as the agent does
}

// attachments are a node's with the addresses of its Node object, and no device but its own.
func attachments(name string, objects []dir.Object) model.Attachments {
	var own []netip.Addr
	for i := range objects {
		if n, is := objects[i].Object.(*corev1.Node); is && n.Name == name {
			here, _ := resolve.Node(n)
			own = slices.Clone(here.Addresses)
		}
	}
	var first [2]netip.Addr
	for i, stand := range standIns {
		of := func(a netip.Addr) bool { return a.Is4() == stand.Is4() }
		if !slices.ContainsFunc(own, of) {
			own = append(own, stand)
		}
		first[i] = own[slices.IndexFunc(own, of)]
	}
	return model.Attachments{
		Ports: []model.Port{{ID: 1, Kind: model.PortHost, Device: "lace0", MTU: 1500, Addresses: own}},
		Node4: first[0], Node6: first[1],
	}
}
