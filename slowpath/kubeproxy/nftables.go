package kubeproxy

import (
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// servicesChain is where every packet meets kube-proxy's rules in its mode iptables.
const servicesChain = "KUBE-SERVICES"

// nftNames lists the table and the chain of nftables by which kube-proxy is known, each
// once: its table in its mode nftables, its chain in its mode iptables over nftables.
func nftNames() (signs []string) {
	if slices.Contains(nftDump(unix.NFT_MSG_GETTABLE, unix.NFTA_TABLE_NAME), "kube-proxy") {
		signs = append(signs, "nftables table kube-proxy")
	}
	if slices.Contains(nftDump(unix.NFT_MSG_GETCHAIN, unix.NFTA_CHAIN_NAME), servicesChain) {
		signs = append(signs, "nftables chain "+servicesChain)
	}
	return signs
}

// nftDump lists the names of one kind of object, of all families (linux/netfilter/nf_tables.h).
func nftDump(message int, nameAttr uint16) (names []string) {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|message, unix.NLM_F_DUMP)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.NFPROTO_UNSPEC, Version: unix.NFNETLINK_V0})
	answers, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	if err != nil {
		return nil
	}
	for _, m := range answers {
		attrs, err := nl.ParseRouteAttr(m[min(len(m), nl.SizeofNfgenmsg):])
		if err != nil {
			continue
		}
		for _, a := range attrs {
			if a.Attr.Type == nameAttr {
				names = append(names, unix.ByteSliceToString(a.Value))
			}
		}
	}
	return names
}
