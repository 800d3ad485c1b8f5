package kube

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// Where a pod finds the credentials of its service account.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// access is what is needed to be let in: certificates and credentials from a kubeconfig,
// or those of the pod's service account, and the servers.
func access(c *Config) (*rest.Config, []*url.URL, error) {
	if c.Kubeconfig == "" && len(c.Servers) == 0 {
		return nil, nil, noServer()
	}
	servers, err := Servers(c.Servers, c.ServiceCIDRs) // first: what is wrong here needs no file
	if err != nil {
		return nil, nil, fmt.Errorf("--apiserver: %w", err)
	}
	read := account
	if c.Kubeconfig != "" {
		read = func() (*rest.Config, error) { return fromFile(c.Kubeconfig) }
	}
	config, err := read()
	if err != nil {
		return nil, nil, err
	}
	if len(servers) == 0 {
		if servers, err = Servers([]string{config.Host}, c.ServiceCIDRs); err != nil {
			return nil, nil, fmt.Errorf("--kubeconfig %s: %w", c.Kubeconfig, err)
		}
	}
	config.Host = servers[0].String()
	config.UserAgent = "lace-agent/" + c.Version
	return config, servers, nil
}

// noServer says what is missing, and why a pod's environment does not do.
func noServer() error {
	host := os.Getenv("KUBERNETES_SERVICE_HOST")
	if host == "" {
		return errors.New("no API server is named: say where it is (--apiserver), or give a kubeconfig that does (--kubeconfig)")
	}
	return fmt.Errorf("no API server is named (--apiserver): KUBERNETES_SERVICE_HOST is %s, the ClusterIP that Lace itself has to serve, so that a restarted node would wait for itself; name the API servers' own addresses", host)
}

// account reads the service account of a pod. The token is read again as it is renewed.
func account() (*rest.Config, error) {
	token := filepath.Join(accountDir, "token")
	b, err := os.ReadFile(token)
	if err != nil {
		return nil, fmt.Errorf("no credentials: without --kubeconfig the service account of a pod is used: %w", err)
	}
	config := &rest.Config{BearerToken: string(b), BearerTokenFile: token}
	config.CAFile = filepath.Join(accountDir, "ca.crt")
	return config, nil
}
