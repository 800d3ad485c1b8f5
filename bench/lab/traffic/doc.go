// Package traffic is what the processes of a lab do with real sockets: echo servers that
// say who they are, single connections, bursts of connections and long-running streams
// that check every byte and time every gap.
//
// It uses the ordinary socket API of the network namespace it runs in and knows nothing
// of Lace: what it reports is what an application would have seen. It must never retry a
// TCP connection or hide a failure; a failed attempt is an Answer with an Outcome, not an
// error. Errors are kept for requests that make no sense.
//
// Protocol. TCP: the server speaks first, one line with its name and the client's address
// as the server sees it, then echoes what it reads until the client closes. UDP: each
// datagram is answered by one datagram with the same line in front of the payload.
//
// Cost: one goroutine per connection; answers of a burst are kept in memory, about 200
// bytes each.
package traffic
