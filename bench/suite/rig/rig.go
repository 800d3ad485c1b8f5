package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/load"
)

// Config of a rig.
type Config struct {
	Mode      Mode
	Services  int
	FlowSlots int // of Lace, in each node
}

// Rig is a mode ready to be measured.
type Rig struct {
	Config
	Setup time.Duration // what the mode took to be in force

	lab     *lab.Lab
	folder  string
	spaces  map[string]*load.Space
	servers []*load.Server
	closers []func() error
}

// ErrMissing is wrapped when a mode cannot be measured for want of a tool.
var ErrMissing = errors.New("missing")

// Open builds a rig.
func Open(ctx context.Context, c Config) (*Rig, error) {
	if c.Services < 1 || c.Services > MaxServices {
		return nil, fmt.Errorf("%d services: say 1 to %d", c.Services, MaxServices)
	}
	r := &Rig{Config: c, spaces: map[string]*load.Space{}}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s with %d services: %w", c.Mode.Name, c.Services, err), r.Close())
	}
	return r, nil
}

func (r *Rig) open(ctx context.Context) (err error) {
	if err := r.check(); err != nil {
		return err
	}
	if r.folder, err = os.MkdirTemp("", "lace-rig-"); err != nil {
		return err
	}
	if err := writeManifests(r.folder, services(r.Services)); err != nil {
		return err
	}
	r.lab, err = lab.Start(ctx, lab.Topology{
		Workers: r.Mode.Workers, FlowSlots: r.FlowSlots, Lane: r.Mode.Lane, Delivery: cmp.Or(r.Mode.Delivery, "direct"), Manifests: r.folder,
	})
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{r.enter, r.setDevices, r.addClients, r.tune, r.serve} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	start := time.Now()
	err = r.install(ctx)
	r.Setup = time.Since(start)
	return err
}

// Close ends everything of the rig.
func (r *Rig) Close() error {
	var errs []error
	for i := len(r.closers) - 1; i >= 0; i-- {
		errs = append(errs, r.closers[i]())
	}
	for _, s := range r.servers {
		errs = append(errs, s.Close())
	}
	for _, s := range r.spaces {
		errs = append(errs, s.Close())
	}
	if r.lab != nil {
		errs = append(errs, r.lab.Close())
	}
	if r.folder != "" {
		errs = append(errs, os.RemoveAll(r.folder))
	}
	return errors.Join(errs...)
}

// wireSpace is where the bridge is.
const wireSpace = "wire"

// enter opens every namespace that a measurement touches.
func (r *Rig) enter(context.Context) error {
	hosts := map[string]*lab.Host{wireSpace: r.lab.Wire()}
	for _, name := range []string{"n1", "n2", "web-1", "web-2", "web-3", clientPod, lab.OutsideName} {
		h, err := r.lab.Host(name)
		if err != nil {
			return err
		}
		hosts[name] = h
	}
	for name, h := range hosts {
		s, err := load.OpenSpace(name, h.PID())
		if err != nil {
			return err
		}
		r.spaces[name] = s
	}
	return nil
}

// setDevices sets offloads, in every mode alike. GRO on the node's ends lets frames be
// redirected to them, and makes the uplink a wire that merges; the outside host sends what
// comes over a wire: segments of the wire's size with complete checksums.
func (r *Rig) setDevices(context.Context) error {
	set := func(space, device string, o load.Offload, on bool) error {
		return r.spaces[space].SetOffload(device, o, on)
	}
	for _, d := range []string{clientPod, "web-1", "web-2", "eth0"} {
		if err := set("n1", d, load.GRO, true); err != nil {
			return err
		}
	}
	for _, d := range []string{"web-3", "eth0"} {
		if err := set("n2", d, load.GRO, true); err != nil {
			return err
		}
	}
	for _, o := range []load.Offload{load.TSO, load.GSO, load.TxChecksum} {
		if err := set(lab.OutsideName, "eth0", o, false); err != nil {
			return err
		}
	}
	if r.Mode.Kind != Ceiling {
		return nil
	}
	for _, pod := range []string{clientPod, "web-1", "web-2"} {
		if err := set(pod, "eth0", load.GRO, true); err != nil {
			return err
		}
	}
	return nil
}

// clientSources and outsideSources are what frames are sent from: load.SourceAddresses each.
var (
	clientSources  = netip.MustParseAddr("10.244.1.128")
	outsideSources = netip.MustParseAddr("172.31.0.0")
)

// addClients gives the client pod the addresses that its frames come from. Those of the
// outside lie behind the default route, as the whole world does.
func (r *Rig) addClients(context.Context) error {
	node, err := r.spaces["n1"].Links().LinkByName(clientPod)
	if err != nil {
		return err
	}
	pod, err := r.spaces[clientPod].Links().LinkByName("eth0")
	if err != nil {
		return err
	}
	a := clientSources
	for range load.SourceAddresses {
		to := &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
		route := &netlink.Route{LinkIndex: node.Attrs().Index, Dst: to, Scope: netlink.SCOPE_LINK}
		if err := r.spaces["n1"].Links().RouteAdd(route); err != nil {
			return fmt.Errorf("route to %s: %w", a, err)
		}
		if err := r.spaces[clientPod].Links().AddrAdd(pod, &netlink.Addr{IPNet: to}); err != nil {
			return fmt.Errorf("address %s: %w", a, err)
		}
		a = a.Next()
	}
	return nil
}

// tune gives clients enough ports for a round of connections.
func (r *Rig) tune(ctx context.Context) error {
	for _, name := range []string{clientPod, lab.OutsideName} {
		h, err := r.lab.Host(name)
		if err != nil {
			return err
		}
		err = h.SetSysctls(ctx,
			lab.Sysctl{Name: "net.ipv4.ip_local_port_range", Value: "2048 60999"},
			lab.Sysctl{Name: "net.ipv4.tcp_tw_reuse", Value: "1"})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Rig) serve(context.Context) error {
	for _, name := range append(append([]string{}, localPods...), remotePods...) {
		s, err := load.Serve(r.spaces[name], netip.AddrPortFrom(pods[name], BackendPort))
		if err != nil {
			return err
		}
		r.servers = append(r.servers, s)
	}
	return nil
}
