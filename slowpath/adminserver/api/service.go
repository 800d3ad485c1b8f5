package api

// Service is one Service as Lace resolved it for this node.
type Service struct {
	Namespace      string        `json:"namespace"`
	Name           string        `json:"name"`
	Network        uint32        `json:"network"`
	InternalPolicy string        `json:"internalTrafficPolicy"`
	ExternalPolicy string        `json:"externalTrafficPolicy"`
	Affinity       uint32        `json:"affinitySeconds"`               // for which a client keeps its endpoint; 0: it does not
	Sources        []string      `json:"sourceRanges,omitempty"`        // who may call its LoadBalancer addresses, by family; none of a family: everybody
	HealthPort     uint16        `json:"healthCheckNodePort,omitempty"` // where balancers ask whether this node has endpoints; 0: nowhere
	Ports          []ServicePort `json:"ports"`
}

// ServicePort is one port of a Service.
type ServicePort struct {
	Name      string     `json:"name,omitempty"`
	Protocol  string     `json:"protocol"`
	Port      uint16     `json:"port"`
	Frontends []Frontend `json:"frontends"`
	Families  []Family   `json:"families"`
}

// Frontend is one address that clients dial.
type Frontend struct {
	Kind    string `json:"kind"`    // ClusterIP, NodePort, ExternalIP, LoadBalancer
	Address string `json:"address"` // empty: the node port would be at one of the node, and there is none
	Port    uint16 `json:"port"`
	Served  bool   `json:"served"`           // it is in the tables: packets to it are carried, to this Service
	Holder  string `json:"holder,omitempty"` // who has it instead: another Service, the node, a pod or the API server
	Why     string `json:"why,omitempty"`    // why it is not served, where nobody else has it
}

// Family holds the choices for one address family.
type Family struct {
	Family   string `json:"family"`   // IPv4 or IPv6
	Internal Choice `json:"internal"` // for the ClusterIP
	External Choice `json:"external"` // other frontends, clients outside the cluster
	Cluster  Choice `json:"cluster"`  // other frontends, clients inside the cluster
}

// Choice says which endpoints new connections go to, and why the others do not take part.
type Choice struct {
	Tier      string      `json:"tier"` // which rule chose
	Endpoints []Endpoint  `json:"endpoints"`
	Excluded  []Exclusion `json:"excluded,omitempty"`
	Notes     []string    `json:"notes,omitempty"` // why hints did not choose
}

// Exclusion is an endpoint that does not take part, and why.
type Exclusion struct {
	Endpoint Endpoint `json:"endpoint"`
	Reason   string   `json:"reason"`
}

// Endpoint is one endpoint as the EndpointSlices describe it.
type Endpoint struct {
	Address     string `json:"address"`
	Port        uint16 `json:"port"`
	Node        string `json:"node,omitempty"`
	Zone        string `json:"zone,omitempty"`
	Pod         string `json:"pod,omitempty"` // namespace/name
	Ready       bool   `json:"ready"`
	Serving     bool   `json:"serving"`
	Terminating bool   `json:"terminating"`
	Local       bool   `json:"local"`            // on this node
	NoPort      bool   `json:"noPort,omitempty"` // on this node, where no port has the address: what is sent there is lost
}

// Backend is one endpoint of one Service port, with what this node sends there.
type Backend struct {
	Namespace   string `json:"namespace"` // of the Service
	Service     string `json:"service"`
	Port        string `json:"port"` // the Service port: name, or number/protocol
	Protocol    string `json:"protocol"`
	Network     uint32 `json:"network"`
	Address     string `json:"address"`
	TargetPort  uint16 `json:"targetPort"`
	Node        string `json:"node,omitempty"`
	Zone        string `json:"zone,omitempty"`
	Pod         string `json:"pod,omitempty"`
	Local       bool   `json:"local"`
	Ready       bool   `json:"ready"`
	Serving     bool   `json:"serving"`
	Terminating bool   `json:"terminating"`
	// NoPort says that the endpoint is on this node, where no port has its address: used or
	// not, what is sent there is lost.
	NoPort bool `json:"noPort,omitempty"`
	// Used says that new connections through the ClusterIP may go here; Why says
	// why not, in the words of the endpoint choice.
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"`
	// Outside says the same for clients outside the cluster at the Service's other
	// addresses; nil: there are none.
	Outside *Use `json:"outside,omitempty"`
	// Flows counts registered flows of this node towards the backend that are not
	// closed, by this Service or any other that shares it.
	Flows uint64 `json:"flows"`
}

// Use says whether new connections of some clients may go to an endpoint, and why not.
type Use struct {
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"`
}
