package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lace-cni.io/lace/bench/lab/testenv"
)

// Version of Kubernetes that is run.
const Version = "v1.37.2"

// Binary is where make cluster-binaries puts the control plane.
func Binary() (string, error) {
	root, err := projectRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".cache", "cluster", Version, "controlplane")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no control plane, run make cluster-binaries: %w", err)
	}
	return path, nil
}

// projectRoot is the folder of the project in which this process runs.
func projectRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not within the project's tree")
		}
	}
}

// Required skips t where there is no control plane, or may be no lab; it fails when
// LACE_REQUIRE_CLUSTER=1.
func Required(t testing.TB) {
	t.Helper()
	testenv.Privileged(t)
	_, err := Binary()
	switch {
	case err == nil:
	case os.Getenv("LACE_REQUIRE_CLUSTER") == "1":
		t.Fatalf("%v; LACE_REQUIRE_CLUSTER=1 forbids the skip", err)
	default:
		t.Skip(err)
	}
}
