// Package hostport looks at the ports that the node's own processes use, where Services use
// ports of the node's addresses too.
//
// It owns the reading of the kernel's lists of sockets, and the reservation of the range
// from which the fast path takes source ports, and of node ports: processes that ask the
// kernel for any port must get none of these. It must never touch a socket, or take a reservation
// away that somebody else made.
//
// Cost: every few seconds three short files, and, only while there are node ports, the list of
// listening TCP sockets and that of all UDP sockets.
package hostport
