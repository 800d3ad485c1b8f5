package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab"
)

// churned pods come and go, a few at a time.
const (
	churned = 50
	present = 5
)

// TestPodChurn: pods come and go; each is found and served while it is there, and nothing of
// it is left when it is gone, neither a port nor a program's link.
func TestPodChurn(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Lane: "on", Delivery: "stack"})
	ports, links := c.portNames(t), c.links(t)
	var pods []*churnedPod
	for i := range churned + present {
		if i >= present {
			close(pods[i-present].gone)
		}
		if i < churned {
			pods = append(pods, c.churn(t, i))
		}
	}
	within(t, silence, "the ports that there were", func() bool { return c.portNames(t) == ports })
	within(t, silence, "the links that there were", func() bool { return c.links(t) == links })
}

// churnedPod is a thread in a namespace of its own, with whose end the pod's devices vanish.
type churnedPod struct {
	device string
	made   chan int // its thread
	may    chan struct{}
	served chan error
	gone   chan struct{}
}

// churn makes a pod and calls web from it.
func (c *cluster) churn(t *testing.T, i int) *churnedPod {
	t.Helper()
	n1, addr := c.Node("n1").Host, fmt.Sprintf("10.244.1.%d", 100+i)
	p := &churnedPod{fmt.Sprintf("churn%d", i), make(chan int), make(chan struct{}), make(chan error, 1), make(chan struct{})}
	go p.live()
	tid, ok := <-p.made
	if !ok {
		t.Fatal(<-p.served)
	}
	path := fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), tid)
	ip(t, n1, `link add %[1]s type veth peer name eth0 netns %[2]s
addr add 10.244.1.1/32 dev %[1]s
link set %[1]s up
route add %[3]s/32 dev %[1]s`, p.device, path, addr)
	inNamespace(t, path, func() {
		for _, line := range []string{"link set lo up", "addr add " + addr + "/32 dev eth0", "link set eth0 up",
			"route add 10.244.1.1 dev eth0", "route add default via 10.244.1.1 dev eth0"} {
			if out, err := ipHere(line); err != nil {
				t.Errorf("ip %s: %v: %s", line, err, out)
			}
		}
	})
	within(t, silence, "port of "+p.device, func() bool { return strings.Contains(c.portNames(t), " "+p.device+"=["+addr+"]") })
	ctx, cancel := context.WithTimeout(t.Context(), silence)
	defer cancel()
	c.must(t, c.Node("n1").AwaitReady(ctx))
	close(p.may)
	if err := <-p.served; err != nil {
		t.Errorf("%s: %v", p.device, err)
	}
	return p
}

func (p *churnedPod) live() {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	ns, err := netns.New()
	if err != nil {
		p.served <- err
		close(p.made)
		return
	}
	defer ns.Close()
	p.made <- unix.Gettid()
	<-p.may
	p.served <- callWeb()
	<-p.gone
}

// callWeb waits for the first byte of the answer.
func callWeb() error {
	conn, err := (&net.Dialer{Timeout: silence}).Dial("tcp4", vip("web", 4).String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// portNames lists the ports of n1 with their addresses.
func (c *cluster) portNames(t *testing.T) string {
	t.Helper()
	admin := c.Node("n1").Admin()
	defer admin.Close()
	list, err := admin.Ports(t.Context())
	c.must(t, err)
	var b strings.Builder
	for _, p := range list.Items {
		if p.Kind == "pod" {
			fmt.Fprintf(&b, " %s=%v", p.Device, p.Addresses)
		}
	}
	return b.String()
}

// links counts the pinned links of n1.
func (c *cluster) links(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(c.stateFile("n1", "bpf/lace/links"))
	c.must(t, err)
	return len(entries)
}
