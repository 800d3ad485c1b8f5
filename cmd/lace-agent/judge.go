package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"lace-cni.io/lace/slowpath/source/kube"
)

// judge refuses values that cannot be right, each by the name of its flag, and completes
// the node's name.
func (o *options) judge() error {
	if _, err := kube.Servers(o.apiservers, o.ranges); err != nil {
		return fmt.Errorf("--apiserver: %w", err)
	}
	if err := folder(o.sourceDir); err != nil {
		return err
	}
	if err := listens("--healthz-bind-address", o.healthAddr); err != nil {
		return err
	}
	if err := listens("--metrics-bind-address", o.metricsAddr); err != nil {
		return err
	}
	if o.nodeName != "" {
		return named(fmt.Sprintf("--node-name %q", o.nodeName), o.nodeName)
	}
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("--node-name is missing, and the host name cannot be read: %w", err)
	}
	o.nodeName = strings.ToLower(name) // as the kubelet does
	if o.cleanup || o.version {
		return nil // nothing is looked up by it
	}
	return named(fmt.Sprintf("--node-name is missing, and the host name %q", name), o.nodeName)
}

// statFor is how long the start waits for a place that does not answer, such as a share of
// a server that is away: that may come back, and is looked for as long as the agent runs.
const statFor = 2 * time.Second

// folder refuses a --source-dir that is there and no folder, which nothing but a mistake in
// the command line explains. One that is not there may come.
func folder(path string) error {
	if path == "" {
		return nil
	}
	wrong := make(chan bool, 1)
	go func() {
		about, err := os.Stat(path)
		wrong <- err == nil && !about.IsDir()
	}()
	select {
	case is := <-wrong:
		if is {
			return fmt.Errorf("--source-dir %s: it is no folder; name the folder that holds the YAML files", path)
		}
	case <-time.After(statFor):
	}
	return nil
}

// listens judges an address to listen at. Empty: nothing listens.
func listens(flag, addr string) error {
	if addr == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		var bad *net.AddrError
		if errors.As(err, &bad) {
			err = errors.New(bad.Err)
		}
		return fmt.Errorf("%s %q: %w; write one like 127.0.0.1:10256", flag, addr, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s %q: port %q is none of 0 to 65535", flag, addr, port)
	}
	return nil
}

// named judges the name of a Node object.
func named(what, name string) error {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return fmt.Errorf("%s: no Node can have this name: %s", what, strings.Join(wrong, "; "))
	}
	return nil
}
