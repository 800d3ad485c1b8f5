package compile

import (
	"time"

	"lace-cni.io/lace/control/model"
)

// Compiler turns resolved Services and attachments into snapshots.
type Compiler struct{}

// SetService adds or replaces a Service.
func (c *Compiler) SetService(s *model.Service) {}

// DeleteService withdraws a Service.
func (c *Compiler) DeleteService(n model.Name) {}

// SetAttachments replaces ports, addresses and routes.
func (c *Compiler) SetAttachments(a model.Attachments) {}

// Snapshot encodes.
func (c *Compiler) Snapshot(generation uint64, created time.Time) ([]byte, []model.Problem, error) {
	return nil, nil, nil
}
