package main

import (
	"errors"
	"net/http"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// Exit codes of the command.
const (
	exitDone  = 0
	exitBad   = 1
	exitUsage = 2
)

// failure is an error of a command that was understood: the command line was fine.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// errSaid ends a command with exit code 1 when it has already said why.
var errSaid = errors.New("said already")

// exitCode tells mistakes of the command line from everything else. An agent that calls
// the question itself bad (an address that does not parse) says the same thing.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	var refused *api.RefusedError
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest {
		return exitUsage
	}
	var f failure
	if errors.As(err, &f) {
		return exitBad
	}
	return exitUsage
}
