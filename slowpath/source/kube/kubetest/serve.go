package kubetest

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
)

// Endpoint is where a Server is reached over TCP.
type Endpoint struct {
	URL        string
	Kubeconfig string // file with which the Server is trusted
	server     *httptest.Server
}

// Serve serves on a TCP port of the loopback device by HTTP/2 over TLS, and writes a
// kubeconfig into dir. The Endpoint must be closed.
func (a *Server) Serve(dir string) (*Endpoint, error) {
	s := httptest.NewUnstartedServer(a)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that tests cut
	s.StartTLS()
	e := &Endpoint{URL: s.URL, Kubeconfig: filepath.Join(dir, "kubeconfig"), server: s}
	ca := filepath.Join(dir, "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, certificate, 0o600); err != nil {
		s.Close()
		return nil, err
	}
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"contexts: [{name: c, context: {cluster: k, user: u}}]\n"+
		"clusters: [{name: k, cluster: {server: %q, certificate-authority: %q}}]\n"+
		"users: [{name: u, user: {token: secret}}]\n", s.URL, ca)
	if err := os.WriteFile(e.Kubeconfig, []byte(text), 0o600); err != nil {
		s.Close()
		return nil, err
	}
	return e, nil
}

// Close cuts every connection and waits for the requests to end.
func (e *Endpoint) Close() {
	e.server.CloseClientConnections()
	e.server.Close()
}
