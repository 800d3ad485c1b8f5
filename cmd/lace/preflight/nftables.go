package preflight

import (
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// nftNames lists the tables and chains of nftables by which kube-proxy is known: its
// table "kube-proxy" in nftables mode, chains "KUBE-SERVICES" in iptables mode over
// nftables. Rules of the older iptables are not seen here.
func nftNames() (out []string) {
	for _, name := range nftDump(unix.NFT_MSG_GETTABLE, unix.NFTA_TABLE_NAME) {
		if name == "kube-proxy" {
			out = append(out, "table "+name)
		}
	}
	for _, name := range nftDump(unix.NFT_MSG_GETCHAIN, unix.NFTA_CHAIN_NAME) {
		if strings.HasPrefix(name, "KUBE-SERVICES") {
			out = append(out, "chain "+name)
		}
	}
	return out
}

// nftDump lists the names of one kind of object, of all families.
func nftDump(message int, nameAttr uint16) (names []string) {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|message, unix.NLM_F_DUMP)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.NFPROTO_UNSPEC, Version: unix.NFNETLINK_V0})
	answers, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	if err != nil {
		return nil
	}
	for _, m := range answers {
		for kind, value := range attributes(m[min(len(m), nl.SizeofNfgenmsg):]) {
			if kind == nameAttr {
				names = append(names, unix.ByteSliceToString(value))
			}
		}
	}
	return names
}
