package eligible

import "lace-cni.io/lace/control/model"

// Query is who asks.
type Query struct {
	Policy       model.Policy
	Distribution model.Distribution
	Node         model.Node
}

// Select chooses.
func Select(endpoints []model.Endpoint, q Query) model.Choice { return model.Choice{} }
