// Package manifests judges a folder of Kubernetes YAML before it is given to an agent: which
// Problems would it have?
//
// It owns nothing of the rules: the folder is read by slowpath/source/dir and the objects
// are worked on by slowpath/publish, as in an agent. What it adds is a node to do it for,
// since nothing of the machine is looked at. It must never
// write, and needs neither privileges nor a running Lace.
//
// Cost: that of an agent's first publication.
//
// Flow: folder → objects and their places → node → Problems.
package manifests
