package kube

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"lace-cni.io/lace/slowpath/regular"
)

// maxFile is what a kubeconfig, or a file that it names, may have: a hundred times what
// one with certificates in it has.
const maxFile = 1 << 20

// fromFile reads a kubeconfig.
func fromFile(path string) (*rest.Config, error) {
	config, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", path, err)
	}
	return config, nil
}

func load(path string) (*rest.Config, error) {
	b, err := regular.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(b)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	for _, c := range config.Clusters {
		c.LocationOfOrigin = path
	}
	for _, a := range config.AuthInfos {
		a.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, err
	}
	if err := readable(config); err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
}

// readable says which of the files that the current context names cannot be read: the
// client would read them whatever they are, and for as long as they last.
func readable(config *clientapi.Config) error {
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil // the client says so
	}
	var files []string
	if c := config.Clusters[context.Cluster]; c != nil {
		files = append(files, c.CertificateAuthority)
	}
	if a := config.AuthInfos[context.AuthInfo]; a != nil {
		files = append(files, a.ClientCertificate, a.ClientKey, a.TokenFile)
	}
	for _, f := range files {
		if f == "" {
			continue
		}
		if _, err := regular.Read(f, maxFile); err != nil {
			return fmt.Errorf("it names %s: %w", f, err)
		}
	}
	return nil
}
