package kube

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"lace-cni.io/lace/control/model"
)

// Servers reads addresses of API servers as people write them: a URL, or host and port.
// Names of the Service "kubernetes" and addresses in service ranges are refused: Lace
// itself would have to serve them before it can know about them.
func Servers(texts []string, ranges []netip.Prefix) ([]*url.URL, error) {
	var out []*url.URL
	for _, text := range texts {
		u, err := server(text)
		if err != nil {
			return nil, err
		}
		if err := ownService(u, ranges); err != nil {
			return nil, err
		}
		for _, earlier := range out {
			if earlier.Host == u.Host {
				return nil, fmt.Errorf("API server %s is named twice", u.Host)
			}
		}
		out = append(out, u)
	}
	return out, nil
}

func server(text string) (*url.URL, error) {
	whole := text
	if !strings.Contains(text, "://") {
		whole = "https://" + text
	}
	u, err := url.Parse(whole)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, fmt.Errorf("%q is no address of an API server; write one like https://192.0.2.10:6443", shown(text))
	case u.Scheme != "https":
		return nil, fmt.Errorf("%q: an API server is spoken to by https only", shown(text))
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil:
		return nil, fmt.Errorf("%q has more than host and port; write one like https://192.0.2.10:6443", shown(text))
	case !isPort(u.Port()):
		return nil, fmt.Errorf("%q: port %s is none of 1 to 65535", shown(text), u.Port())
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "443")
	}
	u.Path = ""
	return u, nil
}

// shown is an address as errors may repeat it: without what could be credentials, wherever
// they stand in a text that need not be a URL at all, and without its query.
func shown(text string) string {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		scheme, _, whole := strings.Cut(text[:at], "://")
		if text = "xxxxx" + text[at:]; whole && !strings.Contains(scheme, ":") {
			text = scheme + "://" + text
		}
	}
	if path, _, asks := strings.Cut(text, "?"); asks {
		text = path + "?…"
	}
	return model.Excerpt(text)
}

// isPort takes the empty one, which stands for the usual port.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

// ownService refuses what would be reached through Lace.
func ownService(u *url.URL, ranges []netip.Prefix) error {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "kubernetes" || host == "kubernetes.default" || strings.HasPrefix(host, "kubernetes.default.svc") {
		return fmt.Errorf("API server %s is the Service of the API server, which Lace serves and so cannot wait for; name the API servers' own addresses", host)
	}
	if r, in := within(host, ranges); in {
		return fmt.Errorf("API server %s is in service range %s, which Lace serves and so cannot wait for; name the API servers' own addresses", host, r)
	}
	return nil
}

// within finds the prefix that a host given by address is in.
func within(host string, ranges []netip.Prefix) (netip.Prefix, bool) {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}, false
	}
	for _, r := range ranges {
		if r.Contains(a.Unmap()) {
			return r, true
		}
	}
	return netip.Prefix{}, false
}
