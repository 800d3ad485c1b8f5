package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// suite is what is read of ginkgo's JSON report.
type suite struct {
	StartTime   time.Time
	RunTime     time.Duration
	SpecReports []spec
}

type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 time.Duration
	NumAttempts             int
	Failure                 struct{ Message string }
}

func (s *spec) name() string {
	return strings.TrimSpace(strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " "))
}

// why is the first line of what the test said when it failed or skipped itself.
func (s *spec) why() string {
	line, _, _ := strings.Cut(strings.TrimSpace(s.Failure.Message), "\n")
	const longest = 200
	if r := []rune(line); len(r) > longest {
		line = string(r[:longest]) + "…"
	}
	return strings.TrimSpace(line)
}

// readSuite reads a report, which holds one suite.
func readSuite(path string) (*suite, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []suite
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s is no JSON report of ginkgo: %w", path, err)
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%s: %d suites, want 1", path, len(all))
	}
	return &all[0], nil
}
