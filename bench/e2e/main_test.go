package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"

	kubernetes "lace-cni.io/lace/bench/cluster"
)

// Sources of what is declared.
const (
	fromFolder = "folder"
	fromAPI    = "api"
)

var sourceName = flag.String("source", fromFolder, "what agents read: `"+fromFolder+"` of YAML, or api: a real API server")

func TestMain(m *testing.M) {
	kubernetes.Main()
	flag.Parse()
	switch *sourceName {
	case fromFolder:
	case fromAPI:
		leaveOut(otherSource)
	default:
		fmt.Fprintf(os.Stderr, "-source %q: say %s or %s\n", *sourceName, fromFolder, fromAPI)
		os.Exit(2)
	}
	code := m.Run()
	endControlPlane()
	os.Exit(code)
}
