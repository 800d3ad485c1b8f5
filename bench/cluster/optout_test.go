//go:build cluster

package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/control/model"
)

// otherProxy is the name by which Services are left to kube-proxy.
const otherProxy = "kube-proxy"

// divided is a cluster whose Services Lace and kube-proxy share: kube-proxy has those whose
// label says so.
type divided struct {
	*world
	mode     string // of kube-proxy
	services map[string]*corev1.Service
}

// served calls a Service from origins until each has an answer at its ClusterIPs, those
// outside at its node port.
func (d *divided) served(service string, origins []string) {
	d.t.Helper()
	s := d.services[service]
	for _, from := range origins {
		h, err := d.Host(from)
		d.must(err)
		for port, network := range []string{"tcp", "udp"} {
			to := []netip.AddrPort{netip.AddrPortFrom(d.Node("n1").Addr4, uint16(s.Spec.Ports[port].NodePort))}
			if from != lab.OutsideName {
				to = nil
				for _, ip := range s.Spec.ClusterIPs {
					to = append(to, netip.AddrPortFrom(netip.MustParseAddr(ip), 80))
				}
			}
			for _, addr := range to {
				d.eventually(fmt.Sprintf("%s serves %s at %s/%s", service, from, addr, network), func() error {
					a, err := h.Dial(d.t.Context(), traffic.Request{Network: network, To: addr, Bytes: 100, Timeout: time.Second})
					d.must(err)
					if a.Outcome != traffic.OK || !slices.Contains(lab.WebPods, a.Server) {
						return errors.New(a.String())
					}
					return nil
				})
			}
		}
	}
}

// laid says whether kube-proxy's rules on a node know the Service.
func (d *divided) laid(n *lab.Node, service string) bool {
	d.t.Helper()
	command := []string{"nft", "list", "map", "ip", "kube-proxy", "service-ips"}
	if d.mode == "iptables" {
		command = []string{"iptables-save", "-t", "nat"}
	}
	out, err := runIn(d.t.Context(), n.PID(), command[0], command[1:]...)
	d.must(err)
	ip := d.services[service].Spec.ClusterIP
	return strings.Contains(out, ip+" ") || strings.Contains(out, ip+"/32")
}

// has says whether Lace carries a Service on a node.
func (d *divided) has(n *lab.Node, service string) bool {
	d.t.Helper()
	admin := n.Admin()
	defer admin.Close()
	list, err := admin.Services(d.t.Context())
	d.must(err)
	for _, s := range list.Items {
		if s.Name == service {
			return true
		}
	}
	return false
}

// belongs waits until a Service is kube-proxy's on every node and not Lace's, or the other
// way around.
func (d *divided) belongs(service string, kubeProxys bool) {
	d.t.Helper()
	for _, n := range d.Nodes() {
		d.eventually(fmt.Sprintf("%s on %s is kube-proxy's: %v", service, n.Name, kubeProxys), func() error {
			if laid, has := d.laid(n, service), d.has(n, service); laid != kubeProxys || has == kubeProxys {
				return fmt.Errorf("kube-proxy has it: %v, Lace has it: %v", laid, has)
			}
			return nil
		})
	}
}

// tracked counts connections to a Service's ClusterIP that n1's kernel translates: those
// that Lace has translated it sees with the endpoint's address.
func (d *divided) tracked(service string) int {
	d.t.Helper()
	out, err := runIn(d.t.Context(), d.Node("n1").PID(), "conntrack", "-L", "--orig-dst", d.services[service].Spec.ClusterIP)
	d.must(err)
	return strings.Count(out, "dst="+d.services[service].Spec.ClusterIP+" ")
}

// drops of Lace, of all nodes.
func (d *divided) drops(reason string) (n uint64) {
	d.t.Helper()
	for _, node := range d.Nodes() {
		admin := node.Admin()
		defer admin.Close()
		drops, err := admin.Drops(d.t.Context())
		d.must(err)
		for _, r := range drops.Items {
			if r.Reason == reason {
				n += r.Packets
			}
		}
	}
	return n
}

// stream opens long TCP connections from a pod to a Service.
func (d *divided) stream(service string) *lab.Stream {
	d.t.Helper()
	to := netip.AddrPortFrom(netip.MustParseAddr(d.services[service].Spec.ClusterIP), 80)
	s, err := d.Pod("shopper").StartStream(d.t.Context(), traffic.Stream{
		Request: traffic.Request{Network: "tcp", To: to, Timeout: patience}, Count: 4, Every: 20 * time.Millisecond,
	})
	d.must(err)
	return s
}

// unbroken waits until a stream has gone on, with no flow of it broken.
func (d *divided) unbroken(s *lab.Stream) {
	d.t.Helper()
	begin, err := s.Progress(d.t.Context())
	d.must(err)
	d.eventually("connections go on", func() error {
		p, err := s.Progress(d.t.Context())
		d.must(err)
		if p.Broken > 0 {
			d.t.Fatal(p.First)
		}
		return goesOn(p.Turns - begin.Turns)
	})
}

// TestBesideKubeProxy: Lace and a real kube-proxy on the same nodes, which has the Services
// that are labelled for it. Each carries its own; a Service changes hands with its label, in
// both directions, without a restart, and the other one's connections do not notice.
func TestBesideKubeProxy(t *testing.T) {
	RequiredKubeProxy(t)
	everywhere := []string{"shopper", "visitor", lab.OutsideName, "n1", "n2"}
	for _, c := range []struct {
		mode string
		lace []string // who reaches Lace's Services
	}{
		{"iptables", everywhere},
		// It drops what the node itself sends to addresses of service ranges that it does not
		// know.
		{"nftables", []string{"shopper", "visitor", lab.OutsideName}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			d := &divided{world: emptyWorld(t), mode: c.mode, services: map[string]*corev1.Service{}}
			d.share(c.lace, everywhere)
		})
	}
}

func (d *divided) share(lace, everywhere []string) {
	part := d.parts()
	var kept *lab.Stream

	part("without a label every Service is Lace's", func() {
		d.grant()
		web := map[string]string{"app": "web"}
		for _, p := range lab.WebPods {
			d.must(d.Pod(p).Listen(d.t.Context(), lab.WebTarget))
			d.must(d.CreatePod(d.t.Context(), d.Pod(p), web))
		}
		for _, name := range []string{"kept", "moving"} {
			s := Service(name, web)
			s.Spec.Type = corev1.ServiceTypeNodePort
			made, err := d.CreateService(d.t.Context(), s)
			d.must(err)
			d.services[name] = made
		}
		server, err := d.ServeLabelled(otherProxy)
		d.must(err)
		for _, n := range d.Nodes() {
			d.must(d.StartLabelledKubeProxy(d.t.Context(), n, server, d.mode))
			d.must(n.StartFastpath(d.t.Context()))
			_, err := d.StartAgentWith(d.t.Context(), n, AgentUser, AgentOptions{Delivery: model.Stack, BesideProxy: true})
			d.must(err)
		}
		d.ready()
		d.awaitRules()
		for _, name := range []string{"kept", "moving"} {
			d.belongs(name, false)
			d.served(name, lace)
		}
		kept = d.stream("kept")
		d.unbroken(kept)
	})

	for _, round := range []string{"", ", again"} {
		part("with its label a Service is kube-proxy's, and Lace leaves its packets alone"+round, func() {
			d.label(Services+"/moving", proxyName, otherProxy)
			d.belongs("moving", true)
			d.served("moving", everywhere)
			unallocated := d.drops("unallocated-vip")
			theirs := d.stream("moving")
			if d.tracked("moving") < 4 {
				d.t.Error("the kernel tracks no connections to the Service: who carries them?")
			}
			d.unbroken(theirs)
			d.served("kept", lace)
			d.unbroken(theirs)
			d.unbroken(kept)
			if got := d.drops("unallocated-vip"); got != unallocated {
				d.t.Errorf("Lace dropped %d packets to addresses that no Service has", got-unallocated)
			}
			_, err := theirs.Stop(d.t.Context())
			d.must(err)
		})

		part("without it, it is Lace's"+round, func() {
			d.label(Services+"/moving", proxyName, nil)
			d.belongs("moving", false)
			d.served("moving", lace)
			d.served("kept", lace)
			d.unbroken(kept)
		})
	}
}

// awaitRules waits until kube-proxy has laid its own on every node.
func (d *divided) awaitRules() {
	d.t.Helper()
	command := []string{"nft", "list", "map", "ip", "kube-proxy", "service-ips"}
	if d.mode == "iptables" {
		command = []string{"iptables", "-t", "nat", "-n", "-L", "KUBE-SERVICES"}
	}
	for _, n := range d.Nodes() {
		d.eventually("kube-proxy's rules on "+n.Name, func() error {
			_, err := runIn(d.t.Context(), n.PID(), command[0], command[1:]...)
			return err
		})
	}
}
