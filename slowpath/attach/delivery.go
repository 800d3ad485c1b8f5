package attach

import "lace-cni.io/lace/control/model"

// deliver marks the ports. What the node itself sends is on lace0 already, past its stack.
func deliver(ports []model.Port, d model.Delivery) {
	for i := range ports {
		if ports[i].Kind != model.PortHost {
			ports[i].Delivery = d
		}
	}
}
