package main

import (
	"maps"
	"slices"
	"strings"
)

// running are the packages whose tests have begun and not ended, each with the tests of it
// that are under way.
type running map[string]map[string]bool

// read takes what an event says about a test, or about a package where there is no test.
func (r running) read(k key, action string) {
	switch action {
	case "start":
		r[k.pkg] = map[string]bool{}
	case "run", "cont":
		if r[k.pkg] == nil {
			r[k.pkg] = map[string]bool{}
		}
		r[k.pkg][k.test] = true
	case "pause":
		delete(r[k.pkg], k.test)
	case "pass", "fail", "skip":
		delete(r[k.pkg], k.test)
		if k.test == "" {
			delete(r, k.pkg)
		}
	}
}

// String names each package with what runs in it; a test that waits for its sub-tests is not
// named beside them.
func (r running) String() string {
	if len(r) == 0 {
		return "no test, go test builds them"
	}
	var all []string
	for _, pkg := range slices.Sorted(maps.Keys(r)) {
		words := []string{strings.TrimPrefix(pkg, "lace-cni.io/lace/")}
		tests := slices.Sorted(maps.Keys(r[pkg]))
		for _, test := range tests {
			if !slices.ContainsFunc(tests, func(other string) bool { return strings.HasPrefix(other, test+"/") }) {
				words = append(words, test)
			}
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}
