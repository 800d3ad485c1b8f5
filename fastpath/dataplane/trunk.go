package dataplane

import (
	"errors"
	"fmt"

	"lace-cni.io/lace/fastpath/pipeline"
	"lace-cni.io/lace/fastpath/port"
	"lace-cni.io/lace/fastpath/worker"
	"lace-cni.io/lace/xdp"
)

// raise opens the trunk, attaches its programs, and connects workers to it. Programs, maps,
// flows and tables are there already: a trunk that was taken away costs no more than this.
// What was opened is taken down again by lower, after an error too.
func (n *node) raise() (err error) {
	c := &n.config
	n.trunk, err = xdp.OpenTrunk(xdp.TrunkConfig{
		StateDir: c.StateDir, Queues: c.Workers, MTU: c.TrunkMTU, Log: c.Log, Repaired: n.repairs.kernel,
	})
	if err != nil {
		return fmt.Errorf("trunk: %w", err)
	}
	if err := n.objects.AttachTrunk(n.trunk); err != nil {
		return fmt.Errorf("trunk: %w", err)
	}
	n.status.XDPMode = string(n.objects.Mode())
	n.measure()
	return n.connect()
}

// connect opens a socket and makes a worker for each queue of the trunk. Frames come from
// now on and wait in the sockets' rings until the workers run.
func (n *node) connect() error {
	err := n.trunk.Do(func() error {
		for queue := range n.config.Workers {
			p, err := port.OpenXSK(lace1, queue)
			if err != nil {
				return err
			}
			n.ports = append(n.ports, p)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sockets: %w", err)
	}
	n.status.SocketMode = n.ports[0].Mode()
	for queue, p := range n.ports {
		w := worker.New(worker.Config{
			Port:       p,
			Pipeline:   pipeline.New(pipeline.Config{Flows: n.flows, Affinity: n.clients, Fragments: n.fragments}),
			Snapshot:   &n.tables.current,
			Counters:   n.counters.Worker(queue),
			Governor:   n.governor,
			SweepSlots: n.sweepSlots(queue),
		})
		n.workers = append(n.workers, w)
		n.tables.users = append(n.tables.users, w)
		if err := n.objects.SetSocket(queue, p.Descriptor()); err != nil {
			return fmt.Errorf("socket of queue %d: %w", queue, err)
		}
	}
	return nil
}

// lower lets go of the trunk and what is connected to it; the workers must have returned.
// Closing a socket takes it out of the kernel's map, so that packets which come now are
// dropped as no-worker and not answered by anybody.
func (n *node) lower() error {
	var errs []error
	for _, w := range n.workers {
		errs = append(errs, w.Conserved())
	}
	for _, p := range n.ports {
		errs = append(errs, p.Close())
	}
	if n.trunk != nil {
		errs = append(errs, n.trunk.Close())
	}
	n.workers, n.ports, n.tables.users, n.trunk = nil, nil, nil, nil
	return errors.Join(errs...)
}
