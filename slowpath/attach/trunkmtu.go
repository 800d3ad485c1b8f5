package attach

import "fmt"

// MostTrunkMTU is the largest trunk that there can be: what XDP in a veth's driver carries with
// pages of 4 KiB.
const MostTrunkMTU = 3506

// TooLong says what comes of a device that takes longer packets than the trunk, and what can be
// done about it. Of a trunk that cannot be made long enough it is not said to be.
func TooLong(mtu, trunk int) (what, do string) {
	what = fmt.Sprintf("MTU %d exceeds the trunk's %d: senders of larger packets to Services are told to keep to that", mtu, trunk)
	if mtu <= MostTrunkMTU {
		return what, fmt.Sprintf("lower the device's MTU to %d, or raise the trunk's: lace-fastpath --trunk-mtu %d", trunk, mtu)
	}
	return what, fmt.Sprintf("where senders do not listen to that, lower the device's MTU to %d; no trunk takes more than %d", trunk, MostTrunkMTU)
}
