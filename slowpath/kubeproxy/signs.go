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
func Look() (s Signs) {
	s.Running = append(processes("/proc"), answer(metricsAddress)...)
	s.Rules = append(nftNames(), legacyNames()...)
	if _, err := netlink.LinkByName(ipvsDevice); err == nil {
		s.Rules = append(s.Rules, "device "+ipvsDevice)
	}
	return s
}

// Words are all signs, those that it runs first.
func (s Signs) Words() []string { return slices.Concat(s.Running, s.Rules) }
