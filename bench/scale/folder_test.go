package scale

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"lace-cni.io/lace/bench/lab/manifests"
)

const endpoints = 10

// write fills a folder with Services of one TCP port and IPv4, a hundred to a file, and
// the lab's Nodes.
func write(b *testing.B, folder string, services int) {
	b.Helper()
	var file bytes.Buffer
	for i := range services {
		fmt.Fprintf(&file, "---\n%s---\n%s", service(i), slice(i, 0))
		if (i+1)%100 == 0 || i == services-1 {
			must(b, manifests.Save(folder, fmt.Sprintf("services-%05d.yaml", i/100), file.Bytes()))
			file.Reset()
		}
	}
}

func service(i int) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: s%[1]d}
spec:
  clusterIP: %[2]s
  ports: [{name: http, port: 80, targetPort: 8080}]
`, i, address("10.96.0.0", 1000+i))
}

// slice writes the endpoints of a Service; shift moves their last one to another address.
func slice(i, shift int) string {
	var s bytes.Buffer
	fmt.Fprintf(&s, `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s%[1]d, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
`, i)
	for j := range endpoints {
		n := i*endpoints + j
		if j == endpoints-1 && shift > 0 {
			n = 1<<21 + shift
		}
		fmt.Fprintf(&s, "- {addresses: [%s], nodeName: n2, conditions: {ready: true}}\n", address("10.128.0.0", n))
	}
	return s.String()
}

func address(first string, n int) netip.Addr {
	a := netip.MustParseAddr(first).As4()
	v := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// resident is the memory of a process that is in use, in bytes.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(b, err)
	for line := range bytes.Lines(status) {
		var kib float64
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %f kB", &kib); n == 1 {
			return kib * 1024
		}
	}
	b.Fatalf("no VmRSS of process %d", pid)
	return 0
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
