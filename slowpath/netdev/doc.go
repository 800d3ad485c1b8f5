// Package netdev is the node's network stack as the slow path sees it: links,
// addresses, routes, neighbours, and a notice when any of them changes.
//
// It owns the conversation with the kernel (rtnetlink, and one ioctl family for
// offloads) and keeps no state of its own: every call reads what is there now, so
// that two callers cannot disagree with the kernel or with each other. Two
// implementations fulfil Stack: Kernel, which is bound to the network namespace in
// which it was opened, and Fake, an in-memory stack for tests that refuses whatever
// the kernel would refuse.
//
// It must never decide anything: which device is a port, and which route belongs
// there, is the business of package attach. It never touches a packet.
//
// Cost: a dump is one system call per 8 to 32 KiB of answer, 1 ms for a few hundred
// links; nothing here is called per packet or per Service.
//
// Flow: attach waits for a notice from Watch, dumps everything with Read, derives
// the ports, and writes the routes of the service ranges with ReplaceRoute.
package netdev
