package measure

import (
	"os"
	"testing"

	"lace-cni.io/lace/bench/lab"
)

func TestMain(m *testing.M) {
	lab.Main()
	os.Exit(m.Run())
}
