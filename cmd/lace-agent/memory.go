package main

import (
	"os"
	"runtime/debug"
)

// garbage is how much of what is kept may come on top as garbage before it is collected, in
// percent. Go's own 100 doubles the memory of a large cluster for nothing: a change makes
// little garbage, so that collections stay rare with less.
const garbage = 20

// thrift keeps the process small, unless the environment says otherwise (GOGC).
func thrift() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}
