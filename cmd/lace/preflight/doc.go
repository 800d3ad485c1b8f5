// Package preflight looks at a machine and says whether Lace can run on it, one verdict
// for each thing that matters, and what to do where it cannot.
//
// Looking (Look) and judging (Judge) are apart: looking is system calls and changes
// nothing, judging is a pure function of what was seen, so that every verdict can be
// tested without the machine that deserves it. It must never change the machine, and it
// needs no running Lace; where one runs, its own word is looked at too.
//
// Cost: a few dozen netlink messages and BPF probes, well under a second, and up to two more
// for an agent that does not answer.
package preflight
