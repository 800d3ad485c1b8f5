package metrics

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNamesAreKubeProxys: what bears its prefix is a metric that kube-proxy has, of its
// kind and with its labels.
func TestNamesAreKubeProxys(t *testing.T) {
	theirs := map[string]string{
		"kubeproxy_sync_proxy_rules_duration_seconds":              "HISTOGRAM ip_family",
		"kubeproxy_network_programming_duration_seconds":           "HISTOGRAM ip_family",
		"kubeproxy_sync_proxy_rules_last_timestamp_seconds":        "GAUGE ip_family",
		"kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds": "GAUGE ip_family",
		"kubeproxy_sync_proxy_rules_no_local_endpoints_total":      "GAUGE ip_family,traffic_policy",
		"kubeproxy_sync_proxy_rules_endpoint_changes_pending":      "GAUGE ",
		"kubeproxy_sync_proxy_rules_endpoint_changes_total":        "COUNTER ",
		"kubeproxy_sync_proxy_rules_service_changes_pending":       "GAUGE ",
		"kubeproxy_sync_proxy_rules_service_changes_total":         "COUNTER ",
		"kubeproxy_proxy_healthz_total":                            "COUNTER code",
		"kubeproxy_proxy_livez_total":                              "COUNTER code",
	}
	families, err := New("test", full).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "kubeproxy_") {
			continue
		}
		seen++
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		if got, want := f.GetType().String()+" "+strings.Join(labels, ","), theirs[f.GetName()]; got != want {
			t.Errorf("%s: %q, kube-proxy has %q", f.GetName(), got, want)
		}
	}
	if seen != len(theirs) {
		t.Errorf("%d metrics under kube-proxy's names, want %d", seen, len(theirs))
	}
}

// TestValuesUnderKubeProxysNames come from the same reading as Lace's own.
func TestValuesUnderKubeProxysNames(t *testing.T) {
	m := New("test", func() Reading {
		r := full()
		r.Changes = Changes{
			Services: 5, Slices: 70, ServicesPending: 1, SlicesPending: 2,
			Queued: time.Unix(1_700_000_200, 0), Applied: time.Unix(1_700_000_100, 0),
		}
		r.WithoutLocal = [2]WithoutLocal{{Internal: 1, External: 2}, {External: 3}}
		return r
	})
	m.Applied(3 * time.Millisecond)
	m.EndpointsInUse("IPv6", 600*time.Millisecond)
	m.Probed("/healthz", 503, nil)
	m.Probed("/livez", 200, nil)
	got := scrape(t, m)
	for series, want := range map[string]string{
		`kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.004"}`:                 "1",
		`kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.002"}`:                 "0",
		`kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv6"}`:                             "1",
		`kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv6",le="0.5"}`:                "0",
		`kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv6",le="1"}`:                  "1",
		`kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv6",le="300"}`:                "1",
		`kubeproxy_network_programming_duration_seconds_count{ip_family="IPv4"}`:                          "0",
		`kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv6"}`:                             "1.7000001e+09",
		`kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"}`:                      "1.7000002e+09",
		`kubeproxy_sync_proxy_rules_service_changes_total`:                                                "5",
		`kubeproxy_sync_proxy_rules_service_changes_pending`:                                              "1",
		`kubeproxy_sync_proxy_rules_endpoint_changes_total`:                                               "70",
		`kubeproxy_sync_proxy_rules_endpoint_changes_pending`:                                             "2",
		`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"}`: "1",
		`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"}`: "2",
		`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv6",traffic_policy="external"}`: "3",
		`kubeproxy_proxy_healthz_total{code="503"}`:                                                       "1",
		`kubeproxy_proxy_healthz_total{code="200"}`:                                                       "0",
		`kubeproxy_proxy_livez_total{code="200"}`:                                                         "1",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %q", series, got[series], want)
		}
	}
}
