package servicehealth

import (
	"encoding/json"
	"net/http"
	"strconv"

	"lace-cni.io/lace/control/model"
)

// answer is the body, as kube-proxy has it.
type answer struct {
	Service struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
	LocalEndpoints      int  `json:"localEndpoints"`
	ServiceProxyHealthy bool `json:"serviceProxyHealthy"`
}

// weight tells balancers that can weigh nodes how many endpoints this one has.
const weight = "X-Load-Balancing-Endpoint-Weight"

// handler answers every path and method about one family of one Service: 200 when the node
// has endpoints and works, else 503.
func (s *Set) handler(n model.Name, family int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		seen := s.look()
		a := answer{LocalEndpoints: s.ledger.local(n, family, seen.InUse), ServiceProxyHealthy: seen.Healthy}
		a.Service.Namespace, a.Service.Name = n.Namespace, n.Name
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("X-Content-Type-Options", "nosniff")
		h[weight] = []string{strconv.Itoa(a.LocalEndpoints)}
		if a.LocalEndpoints == 0 || !a.ServiceProxyHealthy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		b, err := json.MarshalIndent(a, "", "\t")
		if err != nil { // nothing in it can fail
			return
		}
		_, _ = w.Write(b) // a client that went away needs no answer
	}
}
