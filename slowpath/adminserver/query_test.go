package adminserver

import (
	"net/netip"
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
)

func TestParseDestination(t *testing.T) {
	tcp80 := destination{addr: netip.MustParseAddrPort("10.96.0.10:80"), protocol: model.TCP}
	cases := []struct {
		in   string
		want destination
		says string // in the refusal
	}{
		{"10.96.0.10:80/tcp", tcp80, ""},
		{"10.96.0.10:80/TCP", tcp80, ""},
		{"[::ffff:10.96.0.10]:80/tcp", tcp80, ""},
		{"[fd00::10]:53/udp", destination{addr: netip.MustParseAddrPort("[fd00::10]:53"), protocol: model.UDP}, ""},
		{"10.96.0.10:9/sctp", destination{addr: netip.MustParseAddrPort("10.96.0.10:9"), protocol: model.SCTP}, ""},
		{"", destination{}, "address:port/protocol"},
		{"10.96.0.10:80", destination{}, "address:port/protocol"},
		{"10.96.0.10/tcp", destination{}, "address:port/protocol"},
		{"fd00::10:53/udp", destination{}, "brackets"},
		{"10.96.0.10:0/tcp", destination{}, "port 0"},
		{"10.96.0.10:70000/tcp", destination{}, "70000"},
		{"10.96.0.10:80/icmp", destination{}, "icmp"},
		{"10.96.0.10:80/tcp/x", destination{}, "tcp/x"},
		{"[fe80::1%eth0]:80/tcp", destination{}, "zone"},
		{"web:80/tcp", destination{}, "web:80"},
		{strings.Repeat("1", 1000), destination{}, "1000 bytes"},
	}
	for _, c := range cases {
		got, err := parseDestination(c.in)
		switch {
		case c.says == "" && (err != nil || got != c.want):
			t.Errorf("%q: %+v, %v; want %+v", c.in, got, err, c.want)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%q: %v, want a refusal with %q", c.in, err, c.says)
		}
	}
}

func TestParseOrigin(t *testing.T) {
	cases := []struct {
		in   string
		want origin
		ok   bool
	}{
		{"host", origin{host: true}, true},
		{"10.244.1.5", origin{addr: ip("10.244.1.5")}, true},
		{"::ffff:10.244.1.5", origin{addr: ip("10.244.1.5")}, true},
		{"fd00::5", origin{addr: ip("fd00::5")}, true},
		{"web-1", origin{name: "web-1"}, true},
		{"default/web-1", origin{name: "default/web-1"}, true},
		{"eth0.10", origin{name: "eth0.10"}, true},
		{"", origin{}, false},
		{"a/b/c", origin{}, false},
		{"/web", origin{}, false},
		{"web/", origin{}, false},
		{"web 1", origin{}, false},
		{"fe80::1%eth0", origin{}, false},
		{strings.Repeat("a", 1000), origin{}, false},
	}
	for _, c := range cases {
		got, err := parseOrigin(c.in)
		if (err == nil) != c.ok || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v, accepted %v", c.in, got, err, c.want, c.ok)
		}
	}
}

// FuzzExplainQuestion: whatever is asked, the answer is a refusal or names one address,
// port and protocol of one family.
func FuzzExplainQuestion(f *testing.F) {
	for _, s := range [][2]string{
		{"host", "10.96.0.10:80/tcp"},
		{"default/web-1", "[fd00:10:96::10]:53/UDP"},
		{"10.244.1.5", "10.96.0.10:9/sctp"},
		{"fe80::1%eth0", "[fe80::1%eth0]:80/tcp"},
		{"a/b/c", "1.2.3.4:0/tcp"},
		{"::ffff:1.2.3.4", "[::ffff:1.2.3.4]:80/tcp"},
		{"", ""},
		{"\x00", "/"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, from, to string) {
		if o, err := parseOrigin(from); err == nil {
			set := 0
			for _, is := range []bool{o.host, o.addr.IsValid(), o.name != ""} {
				if is {
					set++
				}
			}
			if set != 1 || o.addr.Is4In6() || o.addr.Zone() != "" {
				t.Errorf("from %q: %+v", from, o)
			}
		}
		d, err := parseDestination(to)
		if err != nil {
			return
		}
		if !d.addr.IsValid() || d.addr.Port() == 0 || d.protocol.String() == "unknown" || d.addr.Addr().Is4In6() || d.addr.Addr().Zone() != "" {
			t.Errorf("to %q: %+v", to, d)
		}
		again, err := parseDestination(d.addr.String() + "/" + d.protocol.String())
		if err != nil || again != d {
			t.Errorf("to %q: %+v, written and read again %+v, %v", to, d, again, err)
		}
	})
}
