// Package e2e holds the behaviour tests: what applications see of Lace, in the lab, with
// ordinary sockets, both processes of the product and nothing pretended.
//
// It owns no code but tests. A test states one behaviour and looks at it from every
// origin that it matters to: pods, nodes, the outside client. It must never wait a fixed
// time for something to have happened, and never accept a failure because a second try
// worked.
//
// What a test declares, it declares to a source: a folder of YAML or, with -source api, a
// real API server, where the same texts must mean the same. A test that is not run with the
// API server is on a list, with the reason, that is printed.
//
// Cost: every lab is some fifteen processes; labs are shared by the tests of one setting,
// so that the whole takes a few minutes on two cores.
package e2e
