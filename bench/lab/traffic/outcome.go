package traffic

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Outcome classifies what became of an attempt, as the application saw it.
type Outcome string

const (
	OK          Outcome = "ok"          // answered, every byte as it was sent
	Refused     Outcome = "refused"     // ECONNREFUSED: TCP reset in answer to a SYN, or ICMP port unreachable
	Timeout     Outcome = "timeout"     // nothing came in time
	Reset       Outcome = "reset"       // an established connection was reset
	Unreachable Outcome = "unreachable" // no route, or ICMP host or network unreachable
	Closed      Outcome = "closed"      // the server closed before it had answered
	Corrupt     Outcome = "corrupt"     // the answer differs from what was sent
	Failed      Outcome = "failed"      // anything else; the error text says what
)

// outcomeOf finds the class of an error of the net package. nil is OK.
func outcomeOf(err error) Outcome {
	var timeout net.Error
	switch {
	case err == nil:
		return OK
	case errors.Is(err, errCorrupt):
		return Corrupt
	case errors.Is(err, unix.ECONNREFUSED):
		return Refused
	case errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNABORTED):
		return Reset
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH):
		return Unreachable
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, unix.ETIMEDOUT):
		return Timeout
	case errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case isEOF(err):
		return Closed
	}
	return Failed
}
