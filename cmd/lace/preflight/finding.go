package preflight

import "lace-cni.io/lace/slowpath/adminserver/api"

// Verdict about one thing.
type Verdict string

const (
	OK   Verdict = "ok"
	Warn Verdict = "warn" // Lace runs, but not as well as it could, or something is unknown
	Fail Verdict = "fail" // Lace does not run, or runs wrong
)

// Finding is one verdict, what it rests on, and what to do about it.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	Check   string  `json:"check"`
	Found   string  `json:"found"`
	Do      string  `json:"do,omitempty"`

	Problem *api.Problem `json:"problem,omitempty"` // that Found says in one line
}

func ok(check, found string) Finding { return Finding{Verdict: OK, Check: check, Found: found} }
func warn(check, found, do string) Finding {
	return Finding{Verdict: Warn, Check: check, Found: found, Do: do}
}
func fail(check, found, do string) Finding {
	return Finding{Verdict: Fail, Check: check, Found: found, Do: do}
}

// Failed says whether any finding forbids Lace to run.
func Failed(findings []Finding) bool {
	for _, f := range findings {
		if f.Verdict == Fail {
			return true
		}
	}
	return false
}
