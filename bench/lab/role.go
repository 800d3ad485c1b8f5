package lab

import (
	"encoding/json"
	"fmt"
	"os"
)

// The environment by which a started process knows what it is.
const (
	roleVariable = "LACE_LAB_ROLE"
	specVariable = "LACE_LAB_SPEC"
)

const (
	roleCell     = "cell"
	roleFastpath = "fastpath"
	roleAgent    = "agent"
)

// programs are the roles that users of the package have added.
var programs = map[string]func(spec []byte) error{}

// Program adds a role that Node.StartProgram can start. It is called before Main.
func Program(role string, run func(spec []byte) error) { programs[role] = run }

// Main must be the first call of a program (or of TestMain) that uses the package. In a
// process that the lab started it does that process's work and never returns; in every
// other it does nothing.
func Main() {
	role := os.Getenv(roleVariable)
	if role == "" {
		return
	}
	spec := []byte(os.Getenv(specVariable))
	os.Unsetenv(roleVariable)
	os.Unsetenv(specVariable)
	if err := play(role, spec); err != nil {
		fmt.Fprintf(os.Stderr, "lab %s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(role string, spec []byte) error {
	switch role {
	case roleCell:
		return playAs(spec, runCell)
	case roleFastpath:
		return playAs(spec, runFastpath)
	case roleAgent:
		return playAs(spec, runAgent)
	}
	if run := programs[role]; run != nil {
		return run(spec)
	}
	return fmt.Errorf("no such role; unset %s", roleVariable)
}

func playAs[T any](text []byte, run func(T) error) error {
	var spec T
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("%s: %w", specVariable, err)
	}
	return run(spec)
}
