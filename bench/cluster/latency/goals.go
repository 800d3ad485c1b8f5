package main

import (
	"lace-cni.io/lace/bench/suite/goal"
	"lace-cni.io/lace/bench/suite/record"
)

// goals are what is to be reached with so many Services.
func goals(services int) []goal.Goal {
	of := func(mode, load, field string) goal.Figure {
		return goal.Figure{Mode: mode, Field: field, Measurement: record.Measurement{Load: load, Path: onNode, Services: services}}
	}
	most := func(name, load, field string, target float64) goal.Goal {
		return goal.Goal{Name: name, Of: of("lace", load, field), AtMost: true, Target: target}
	}
	part := func(name, load, field string, target float64) goal.Goal {
		g, to := most(name, load, field, target), of("kube-proxy", load, field)
		g.To = &to
		return g
	}
	return []goal.Goal{
		most("change-idle-p99-ms", loadIdle, "p99", 250),
		part("change-idle-p99-of-kube-proxy", loadIdle, "p99", 0.25),
		most("change-loaded-p99-ms", loadLoaded, "p99", 250),
		part("change-loaded-p99-of-kube-proxy", loadLoaded, "p99", 0.25),
		most("cold-first-s", loadCold, "first", 10),
		most("cold-complete-s", loadCold, "complete", 30),
		most("memory-agent-mib", loadMemory, "lace-agent-changed", 300),
		most("memory-fastpath-mib", loadMemory, "lace-fastpath-changed", 100),
		most("writes-at-rest", loadRest, "writes", 0),
	}
}
