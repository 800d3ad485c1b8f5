package kubeproxy

import (
	"slices"

	"github.com/vishvananda/netlink"
)

// Signs are what a kube-proxy shows of itself, in words.
type Signs struct {
	Running []string // that it runs
	Rules   []string // that its rules are there, whether it runs or has ended
}

// ipvsDevice bears the addresses of Services in kube-proxy's mode ipvs.
const ipvsDevice = "kube-ipvs0"

// Look sees what there is.
func Look() Signs {
	s := Glance()
	s.Running = append(processes("/proc"), s.Running...)
	return s
}

// Glance sees what shows without a look at every process: what a kube-proxy that runs answers,
// and the rules that it has laid. One that has just begun may show neither.
func Glance() (s Signs) {
	s.Running = answer(metricsAddress)
	s.Rules = append(nftNames(), legacyNames()...)
	if _, err := netlink.LinkByName(ipvsDevice); err == nil {
		s.Rules = append(s.Rules, "device "+ipvsDevice)
	}
	return s
}

// Words are all signs, those that it runs first.
func (s Signs) Words() []string { return slices.Concat(s.Running, s.Rules) }
