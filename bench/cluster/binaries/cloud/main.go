// Command cloud plays a cloud's load balancer: it gives each Service of type LoadBalancer
// an address of each of its families (172.30.1.N, fd30:0:0:1::N), writes them into its
// status, and routes them, in the network namespace that it is called with, to one node;
// under externalTrafficPolicy Local to all with a ready endpoint, connection by connection, or
// with sessionAffinity ClientIP to one of them. What is sent to them comes from -source, as
// from a client beyond the nodes' own network. It looks once a second.
package main

import (
	"context"
	"flag"
	"log"
	"net/netip"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config := flag.String("kubeconfig", "", "`file` with address and credentials")
	netns := flag.String("netns", "", "named network `namespace` of the clients")
	source := flag.String("source", "", "the clients' addresses, one of each family, separated by a comma")
	flag.Parse()
	c, err := clientcmd.BuildConfigFromFlags("", *config)
	if err != nil {
		log.Fatal(err)
	}
	r := &router{netns: *netns, routes: map[netip.Addr][]netip.Addr{}}
	for _, s := range strings.Split(*source, ",") {
		a, err := netip.ParseAddr(s)
		if err != nil {
			log.Fatalf("-source: %v", err)
		}
		r.source[family(a)] = a
	}
	b := &balancer{client: kubernetes.NewForConfigOrDie(c), router: r, ids: map[string]int{}}
	for ; ; time.Sleep(time.Second) {
		if err := b.sync(context.Background()); err != nil {
			log.Print(err)
		}
	}
}
