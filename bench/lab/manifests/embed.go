// Package manifests is the folder of Kubernetes YAML with which a lab starts: its nodes
// and a Service with pods on both. The demo shows it, people edit a copy of it.
//
// It also writes EndpointSlices for tests and acts that change endpoints. It must never
// write outside of the folder it is given; a file appears whole or not at all.
package manifests

import "embed"

// Files are the manifests of the lab.
//
//go:embed *.yaml
var Files embed.FS
