// Package metrics shows what Lace counts to Prometheus.
//
// It owns the names, the help and the labels: the tables in metric.go and, under kube-proxy's
// names for what means the same, in kubeproxy.go are the whole list,
// docs/reference/metrics.md explains each, and a test holds the two together. Packets are
// counted by those who move them, in the counter file of the fast path and in a BPF map;
// here they are only read, when somebody scrapes. Histograms are observed as things
// happen: publications are events, not packets.
//
// It must never count a packet, keep a reading from one scrape to the next, or use an
// address, pod, Service or port as a label: labels are bounded by the code or by the
// handful of networks that operators make.
//
// What cannot be read at the moment of a scrape is left out rather than shown as zero;
// lace_fastpath_up says why.
//
// Cost: nothing between scrapes; a scrape costs what its Reading costs, some 100 µs.
package metrics
