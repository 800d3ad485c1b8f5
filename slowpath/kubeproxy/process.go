package kubeproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// processes named kube-proxy that share the caller's network namespace, under a /proc. One
// whose namespace may not be looked at counts: who sees its process is most likely on its
// node.
func processes(proc string) (signs []string) {
	own, _ := os.Readlink(filepath.Join(proc, "thread-self/ns/net"))
	names, _ := filepath.Glob(filepath.Join(proc, "[0-9]*/comm"))
	for _, name := range names {
		if b, err := os.ReadFile(name); err != nil || strings.TrimSpace(string(b)) != "kube-proxy" {
			continue
		}
		dir := filepath.Dir(name)
		if its, err := os.Readlink(filepath.Join(dir, "ns/net")); err == nil && its != own {
			continue
		}
		signs = append(signs, "process "+filepath.Base(dir))
	}
	return signs
}

// metricsAddress is where kube-proxy tells its mode, unless it is told otherwise. A process
// in another container is seen by it.
const metricsAddress = "127.0.0.1:10249"

// modes are those of kube-proxy on Linux. Lace itself answers "lace" there.
var modes = []string{"nftables", "iptables", "ipvs"}

// patience bounds the question, for whoever may listen there.
const patience = time.Second

// answer asks for the mode. It dials by itself, since what a transport dials may come from
// another thread, and so from another network namespace.
func answer(address string) []string {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil
	}
	if _, err := fmt.Fprintf(conn, "GET /proxyMode HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", address); err != nil {
		return nil
	}
	r, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, 4096)), nil)
	if err != nil {
		return nil
	}
	defer r.Body.Close()
	mode, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || !slices.Contains(modes, string(mode)) {
		return nil
	}
	return []string{fmt.Sprintf("mode %s, told at %s/proxyMode", mode, address)}
}
