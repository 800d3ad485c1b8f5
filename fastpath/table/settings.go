package table

import "time"

// DefaultSettings are those of a node on which nothing was configured. The lane is on.
// Timeouts follow nf_conntrack, but for established TCP (24 h) and half-closed TCP (1 h),
// which follow kube-proxy. The source ports lie above both the usual range of NodePorts and
// that of the host's own sockets (net.ipv4.ip_local_port_range).
func DefaultSettings() Settings {
	return Settings{
		Lane:             1,
		HalfOpenMax:      65536,
		SourcePortFirst:  61000,
		SourcePortLast:   65535,
		AnswersPerSecond: 10000,
		Timeouts: Timeouts{
			TCPHalfOpen:    int64(60 * time.Second),
			TCPEstablished: int64(24 * time.Hour),
			TCPClosing:     int64(time.Hour),
			TCPClosed:      int64(60 * time.Second),
			UDPNew:         int64(30 * time.Second),
			UDP:            int64(120 * time.Second),
			SCTP:           int64(210 * time.Second),
		},
	}
}
