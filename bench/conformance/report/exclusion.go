package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// exclusion says which tests are not run, and why.
type exclusion struct {
	name *regexp.Regexp
	why  string
}

// readExclusions reads a file of lines "expression, tab, reason"; # begins a comment.
func readExclusions(path string) ([]exclusion, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []exclusion
	for n, line := range strings.Split(string(b), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		expression, why, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s:%d: no reason: write an expression, a tab and why", path, n+1)
		}
		re, err := regexp.Compile(expression)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
		}
		all = append(all, exclusion{re, strings.TrimSpace(why)})
	}
	return all, nil
}

// reason why a test is left out; empty when it is not.
func reason(all []exclusion, name string) string {
	for _, e := range all {
		if e.name.MatchString(name) {
			return e.why
		}
	}
	return ""
}
