// Package eligible decides which endpoints of a Service port may be chosen for a new
// connection, and says of every other one why not.
//
// It owns one pure function, Select, and the closed lists of words that it answers
// with; docs/reference/eligibility.md explains each word. It knows no Kubernetes type,
// no clock and no state, and must never depend on the order in which endpoints arrive:
// two nodes that hold the same set must choose alike.
//
// Cost: O(n log n) comparisons for n endpoints out of order, O(n) for endpoints in
// order; no allocation when all of them are in order and chosen.
package eligible
