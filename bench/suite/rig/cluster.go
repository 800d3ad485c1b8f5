package rig

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/suite/rules"
)

// Ports of a service and of the servers behind it: echo on the first, discard on the next.
const (
	FrontendPort = 80
	BackendPort  = 8080
)

// cluster is what the rules know.
var cluster = rules.Cluster{Pods: netip.MustParsePrefix("10.244.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16")}

var (
	localVIP  = netip.MustParseAddr("10.96.0.10") // pods of n1
	remoteVIP = netip.MustParseAddr("10.96.0.11") // the pod of n2
	aloneVIP  = netip.MustParseAddr("10.96.0.12") // one pod of n1, for another of its pods
	fillerVIP = netip.MustParseAddr("10.96.1.0")  // and on: nobody calls these
)

// Backends of the two services that are called, and the client.
var (
	localPods  = []string{"web-1", "web-2"}
	remotePods = []string{"web-3"}
	clientPod  = "shopper"
	alonePods  = []string{"web-1"}
	otherPod   = "web-2" // calls it
	pods       = map[string]netip.Addr{
		"web-1": netip.MustParseAddr("10.244.1.11"), "web-2": netip.MustParseAddr("10.244.1.12"),
		"shopper": netip.MustParseAddr("10.244.1.13"), "web-3": netip.MustParseAddr("10.244.2.11"),
	}
)

// MaxServices that there are addresses for.
const MaxServices = 60000

// services are n of them. The one that is called on one node stands in the middle, where
// a list of rules is half walked through; the one across nodes, the one of a single pod, and
// the fillers, have their places around it and count from the second on.
func services(n int) (out []rules.Service) {
	called := []rules.Port{
		{Protocol: "udp", Port: FrontendPort, Target: BackendPort},
		{Protocol: "tcp", Port: FrontendPort, Target: BackendPort},
		{Protocol: "tcp", Port: FrontendPort + 1, Target: BackendPort + 1},
	}
	vip := fillerVIP
	fill := func(count int) {
		for range count {
			out = append(out, rules.Service{
				Name: fmt.Sprintf("filler-%d", len(out)), VIP: vip,
				Ports:     []rules.Port{{Protocol: "tcp", Port: FrontendPort, Target: BackendPort}},
				Endpoints: addresses("web-1", "web-2", "web-3"),
			})
			vip = vip.Next()
		}
	}
	fill((n - 1) / 2)
	out = append(out,
		rules.Service{Name: "near", VIP: localVIP, Ports: called, Endpoints: addresses(localPods...)},
		rules.Service{Name: "far", VIP: remoteVIP, Ports: called, Endpoints: addresses(remotePods...)},
		rules.Service{Name: "alone", VIP: aloneVIP, Ports: called, Endpoints: addresses(alonePods...)})
	fill(n - 1 - (n-1)/2)
	return out
}

func addresses(names ...string) (out []netip.Addr) {
	for _, n := range names {
		out = append(out, pods[n])
	}
	return out
}

// perFile services, so that no file of the folder is long.
const perFile = 500

// writeManifests makes the folder of YAML that says the same as the rules.
func writeManifests(folder string, list []rules.Service) error {
	nodes, err := manifests.Files.ReadFile("nodes.yaml")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "nodes.yaml"), nodes, 0o600); err != nil {
		return err
	}
	for first := 0; first < len(list); first += perFile {
		var b bytes.Buffer
		for i := range list[first:min(first+perFile, len(list))] {
			writeService(&b, &list[first+i])
		}
		name := filepath.Join(folder, fmt.Sprintf("services-%03d.yaml", first/perFile))
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func writeService(b *bytes.Buffer, s *rules.Service) {
	fmt.Fprintf(b, "---\napiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec:\n  clusterIP: %s\n  ports:\n", s.Name, s.VIP)
	for _, p := range s.Ports {
		fmt.Fprintf(b, "  - {name: %s-%d, protocol: %s, port: %d, targetPort: %d}\n", p.Protocol, p.Port, upper(p.Protocol), p.Port, p.Target)
	}
	fmt.Fprintf(b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s-4, labels: {kubernetes.io/service-name: %s}}\naddressType: IPv4\nports:\n", s.Name, s.Name)
	for _, p := range s.Ports {
		fmt.Fprintf(b, "- {name: %s-%d, protocol: %s, port: %d}\n", p.Protocol, p.Port, upper(p.Protocol), p.Target)
	}
	b.WriteString("endpoints:\n")
	for _, e := range s.Endpoints {
		fmt.Fprintf(b, "- {addresses: [%s]}\n", e)
	}
}

func upper(protocol string) string {
	if protocol == "udp" {
		return "UDP"
	}
	return "TCP"
}
