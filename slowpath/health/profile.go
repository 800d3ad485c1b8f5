package health

import (
	"net"
	"net/http"
	"net/http/pprof"
)

// profiles adds the profiles of this process. They tell how it is built and what it is busy
// with, and taking them costs it time: they are for clients on the same machine, whatever
// address the server listens at.
func profiles(mux *http.ServeMux) {
	for path, h := range map[string]http.HandlerFunc{
		"/debug/pprof/":        pprof.Index, // and each profile by its name
		"/debug/pprof/cmdline": pprof.Cmdline,
		"/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol":  pprof.Symbol,
		"/debug/pprof/trace":   pprof.Trace,
	} {
		mux.Handle("GET "+path, onLoopback(h))
	}
}

// onLoopback refuses connections that are not from a loopback address to one.
func onLoopback(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		own, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if own == nil || !isLoopback(own.String()) || !isLoopback(r.RemoteAddr) {
			http.Error(w, "profiles are given at loopback addresses only", http.StatusForbidden)
			return
		}
		h(w, r)
	}
}

// isLoopback judges an address with a port.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
