package manifests

// probesPort is where an agent answers probes unless it is told otherwise
// (--healthz-bind-address); a node port of that number is not served.
const probesPort = 10256
