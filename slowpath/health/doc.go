// Package health answers whether this node's Lace does its work: /healthz and /livez on
// 10256, and /metrics, /healthz, /proxyMode and /configz on 10249, as kube-proxy's users and load
// balancers expect them there.
//
// It owns the rule of what is healthy and the two servers. It must never hold up or be
// held up by anything else: it reads one State, made by its caller, and a client that is
// slow, sends garbage or never ends costs a bounded number of connections for a bounded
// time.
//
// Healthy is a node on which no change waits for longer than a minute: a change that the
// agent has not published yet (/livez and /healthz: another agent might do better), or a
// snapshot that the fast path has not taken up (/healthz only: restarting the agent
// would not help). Nor is one healthy whose fast path has been down for longer than a
// restart takes (/healthz only). /healthz also needs the node to be one that may get traffic: known,
// not being deleted, and without the taint of the cluster autoscaler. Before the first
// change it is healthy.
//
// Cost: nothing between requests; a request is one call of the State function.
package health
