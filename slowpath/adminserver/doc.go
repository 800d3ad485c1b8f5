// Package adminserver answers people's questions about a node on <state-dir>/agent.sock.
//
// It owns the socket, who may ask (root and the agent's own user), and how what the agent
// knows becomes the types of package api. It must never change anything: explain runs the
// production pipeline on a flow table of its own, and the shared flow table is mapped
// read-only.
//
// Everything is bounded: connections, the size of a question, the time of an answer, the
// flows in a list, and how many answers that walk the flow table are made at once. A slow
// reader holds a finished answer, never a lock or a mapping.
//
// Cost: nothing between questions. flows, backends and explain walk the flow table: some
// 50 ms at 100,000 flows (BenchmarkFlowsByBackend), once a second at most for backends.
//
// Flow: socket → peer check → handler → Node (agent) → api type → JSON.
package adminserver
