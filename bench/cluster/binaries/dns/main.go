// Command dns is a small cluster DNS: A and AAAA records of Services (their cluster
// addresses, or those of the endpoints of a headless one, by hostname too), SRV records of
// their ports, CNAME records of those of type ExternalName, and PTR records of cluster
// addresses, over UDP and TCP.
// What CoreDNS does for a cluster, without its minutes of build.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config := flag.String("kubeconfig", "", "`file` with address and credentials")
	listen := flag.String("listen", ":53", "`address` for UDP and TCP")
	flag.Parse()
	c, err := clientcmd.BuildConfigFromFlags("", *config)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	f := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(c), 10*time.Minute)
	z := &zone{f.Core().V1().Services().Lister(), f.Discovery().V1().EndpointSlices().Lister()}
	f.Core().V1().Services().Informer()
	f.Discovery().V1().EndpointSlices().Informer()
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())

	tcp, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(serveTCP(tcp, z)) }()
	log.Fatal(serveUDP(udp, z))
}
