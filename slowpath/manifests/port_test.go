package manifests

import (
	"strconv"
	"strings"
	"testing"

	"lace-cni.io/lace/slowpath/agent"
)

// TestProbesPort: a folder is judged by the port that an agent has by default.
func TestProbesPort(t *testing.T) {
	if !strings.HasSuffix(agent.DefaultHealthAddr, ":"+strconv.Itoa(probesPort)) {
		t.Errorf("probes are answered at %s, a folder is judged by %d", agent.DefaultHealthAddr, probesPort)
	}
}
