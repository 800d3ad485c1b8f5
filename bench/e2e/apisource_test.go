package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	kubernetes "lace-cni.io/lace/bench/cluster"
	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
)

// controlPlane is a real one that all labs share, one after the other: it is started once,
// and each lab begins with an API in which nothing is declared. nil: not started yet.
var controlPlane *kubernetes.Cluster

// controlPlaneStart bounds the start of a control plane: some ten seconds of processor time,
// of which a machine that does much else gives little.
const controlPlaneStart = 5 * time.Minute

// startControlPlane starts it with the Nodes of the lab, and the rights that agents need.
func startControlPlane(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, controlPlaneStart)
	defer cancel()
	c, err := kubernetes.Start(ctx, lab.Topology{})
	if err != nil {
		return err
	}
	nodes, err := manifests.Files.ReadFile("nodes.yaml")
	if err == nil {
		err = c.CreateNodes(ctx, nodes)
	}
	if err == nil {
		err = c.Grant(ctx)
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	controlPlane = c
	return nil
}

// endControlPlane ends it, if it was started.
func endControlPlane() {
	if controlPlane == nil {
		return
	}
	if err := controlPlane.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane:", err)
	}
}

// throughAPI is a lab's part of the API server.
type throughAPI struct {
	*kubernetes.Declared
	end func() error
}

// Close ends the lab's way to the API server.
func (a throughAPI) Close() error { return a.end() }

// startLabOnAPI starts a lab whose agents read from the API server.
func startLabOnAPI(ctx context.Context, topology lab.Topology) (*lab.Lab, objects, error) {
	if controlPlane == nil {
		if err := startControlPlane(ctx); err != nil {
			return nil, nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	declared, err := controlPlane.Declare(ctx)
	if err != nil {
		return nil, nil, err
	}
	if topology.Source, err = controlPlane.Source(kubernetes.AgentUser); err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"web", "web-endpoints"} {
		text, err := manifests.Files.ReadFile(name + ".yaml")
		if err == nil {
			err = declared.Save(ctx, name, text)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	l, err := lab.Start(ctx, topology)
	if err != nil {
		return nil, nil, err
	}
	end, err := controlPlane.Reach(l)
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return l, throughAPI{declared, end}, nil
}

// mayRun skips or fails a test whose source or whose lab there cannot be.
func mayRun(t *testing.T) {
	t.Helper()
	if *sourceName == fromAPI {
		kubernetes.Required(t)
	}
}
