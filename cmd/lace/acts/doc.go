// Package acts is the demo: what Lace promises, played on a stage and asserted.
//
// An act shows one promise with real work (connections, streams, edits of YAML, kills) and
// ends in one line: what was seen, or what went wrong. It owns the promises and their
// bounds; where they are played is the business of a Stage: a lab of network namespaces
// with real sockets, or the same control path and pipeline over memory, which says
// SIMULATED. It must never soften an assertion for one stage, and never print a figure
// that was not measured.
//
// Flow: Play runs the acts in order, each over IPv4 and IPv6, hands each line to the
// caller as soon as it is known, and sums up. Watch is the table that follows.
//
// Cost: about a minute of light traffic on two cores.
package acts
