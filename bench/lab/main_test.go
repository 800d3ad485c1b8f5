package lab_test

import (
	"os"
	"testing"

	"lace-cni.io/lace/bench/lab"
)

func TestMain(m *testing.M) {
	lab.Main()
	victim()
	os.Exit(m.Run())
}
