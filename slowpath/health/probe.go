package health

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Answer is the body of /healthz and /livez. As with kube-proxy, Healthy says how the proxy is
// and not how the node is, and LastUpdated is now while all is well.
type Answer struct {
	LastUpdated  time.Time         `json:"lastUpdated"`
	CurrentTime  time.Time         `json:"currentTime"`
	NodeEligible *bool             `json:"nodeEligible,omitempty"` // /healthz only
	Healthy      bool              `json:"healthy"`
	Status       map[string]Family `json:"status"` // by family: IPv4 and IPv6 are published together

	well   bool // all that the answer follows from holds
	checks []Check
}

// Family is the health of one address family.
type Family struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// healthz answers load balancers: whether traffic may be sent to the node.
func healthz(s State, now time.Time) Answer {
	a := answer(s, s.Works(now), s.checks(now), now)
	a.NodeEligible = &s.Eligible
	return a
}

// livez answers the kubelet: whether this agent is worth keeping.
func livez(s State, now time.Time) Answer {
	return answer(s, s.publishes(now), s.checks(now)[:1], now)
}

func answer(s State, works bool, checks []Check, now time.Time) Answer {
	f := Family{LastUpdated: s.Updated, Healthy: works}
	a := Answer{
		LastUpdated: s.Updated, CurrentTime: now, Healthy: works,
		Status: map[string]Family{"IPv4": f, "IPv6": f},
		well:   !slices.ContainsFunc(checks, func(c Check) bool { return !c.Holds }), checks: checks,
	}
	if a.well {
		a.LastUpdated = now
	}
	return a
}

// rule is one of the two answers.
type rule func(State, time.Time) Answer

// probe serves one of the two answers: 200 when all is well, else 503.
func probe(state func() State, now func() time.Time, answer rule, answered func(code int, checks []Check)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		a := answer(state(), now())
		code := http.StatusOK
		if !a.well {
			code = http.StatusServiceUnavailable
		}
		answered(code, a.checks)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(a) // a client that went away needs no answer
	}
}
