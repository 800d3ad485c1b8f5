package cluster

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// AgentUser is the user that audits are about; agents of a test are to use it.
const AgentUser = "lace-agent"

// auditPolicy notes what the agents ask for and nothing of what others do.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: [` + AgentUser + `]}
- {level: None}
`

func (c *Cluster) auditLog() string { return filepath.Join(c.Folder(), "audit.log") }

// Asked is one request of an agent.
type Asked struct {
	Verb      string
	ObjectRef struct{ Resource, APIGroup, Namespace, Name string }
}

// Audit returns everything that agents have asked the API servers so far.
func (c *Cluster) Audit() ([]Asked, error) {
	b, err := os.ReadFile(c.auditLog())
	if err != nil {
		return nil, err
	}
	var out []Asked
	for line := range bytes.Lines(b) {
		var a Asked
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}
