package agent

import (
	"encoding/json"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/resolve"
)

// TestConfigz shows the configuration that is in use, defaults filled in.
func TestConfigz(t *testing.T) {
	c := config(t, io.Discard)
	c.APIServers = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.10:6443")}
	at, err := resolve.ParseNodePorts("172.30.0.0/24")
	if err != nil {
		t.Fatal(err)
	}
	c.NodePorts = at
	client := start(t, c)
	eventually(t, "the agent answers", func() error { _, err := client.Status(t.Context()); return err })
	var got map[string]map[string]any
	text := fetch(t, "http://"+c.MetricsAddr+"/configz")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	want := map[string]map[string]any{"lace-agent": {
		"version": "v1", "nodeName": "n1", "source": "silence", "apiServers": []any{"192.0.2.10:6443"},
		"stateDir": c.StateDir, "bpffs": c.BPFFS, "serviceCIDRs": []any{"10.96.0.0/16"}, "nodePortAddresses": "172.30.0.0/24",
		"healthzBindAddress": c.HealthAddr, "metricsBindAddress": c.MetricsAddr, "profiling": false, "mode": "lace", "lane": "on", "delivery": "direct", "besideKubeProxy": false,
		"sourcePorts": []any{61000., 65535.}, "halfOpenMax": 65536., "answersPerSecond": 10000.,
		"timeouts": map[string]any{"tcpHalfOpen": "1m0s", "tcpEstablished": "24h0m0s", "tcpClosing": "1h0m0s", "tcpClosed": "1m0s", "udpNew": "30s", "udp": "2m0s", "sctp": "3m30s"},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestConfigzShowsWhatThereIsToConfigure: whoever adds a field decides whether it is shown.
func TestConfigzShowsWhatThereIsToConfigure(t *testing.T) {
	hidden := []string{"Source", "Tell", "Stack", "Log", "SourcePart"} // parts of the program, which nobody configures
	shown := map[string]string{"HealthAddr": "HealthzBindAddress", "MetricsAddr": "MetricsBindAddress", "NodePorts": "NodePortAddresses", "SourceName": "Source", "Settings": "Lane"}
	page := reflect.TypeFor[configz]()
	for i := range reflect.TypeFor[Config]().NumField() {
		name := reflect.TypeFor[Config]().Field(i).Name
		if slices.Contains(hidden, name) {
			continue
		}
		field := name
		if other, ok := shown[name]; ok {
			field = other
		}
		if _, ok := page.FieldByName(field); !ok {
			t.Errorf("Config.%s is not shown: add it to configz, or say here why it is hidden", name)
		}
	}
	for i := range page.NumField() {
		if name := strings.ToLower(page.Field(i).Name); strings.Contains(name, "token") || strings.Contains(name, "kubeconfig") {
			t.Errorf("%s may tell of credentials", name)
		}
	}
}
