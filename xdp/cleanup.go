package xdp

import (
	"errors"
	"fmt"
	"os"
)

// Cleanup detaches every program and removes every pin under <bpffs>/lace: the flows are
// gone, and the node's traffic is as if Lace had never been. Where there is nothing it
// does nothing. It may run beside a fast path, which then has to be started again.
func Cleanup(bpffs string) error {
	p := pinsUnder(bpffs)
	names, err := p.links()
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range names {
		if err := unpin(p.linkPath(n), nil); err != nil {
			errs = append(errs, fmt.Errorf("link %s: %w", n, err))
		}
	}
	errs = append(errs, os.RemoveAll(string(p)))
	return errors.Join(errs...)
}
