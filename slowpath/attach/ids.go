package attach

import (
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// firstID is the first id for pods and uplinks; the node itself has table.HostPort.
const firstID = table.HostPort + 1

// device is what an id stands for. A device that turns from a pod's into an uplink
// gets another id, so that no flow of the one is taken for the other's.
type device struct {
	kind  model.PortKind
	name  string
	index int
}

// ids gives each device a number that stays as long as the device does, also over
// restarts of the agent. Numbers are used again as late as possible: packets under way
// and pinned records may still carry the old meaning.
type ids struct {
	of   map[device]uint16
	used [table.MaxPorts]bool
	last uint16
}

func newIDs(known []table.Port) *ids {
	s := &ids{of: make(map[device]uint16), last: firstID - 1}
	for i := range known {
		p := &known[i]
		if p.ID < firstID || p.ID >= table.MaxPorts || s.used[p.ID] {
			continue
		}
		s.of[device{model.PortKind(p.Kind), p.Device(), int(p.Ifindex)}] = p.ID
		s.used[p.ID] = true
		s.last = max(s.last, p.ID)
	}
	return s
}

// assign gives every port its id and forgets the devices that are not among them.
// Ports for which no id is left are returned apart.
func (s *ids) assign(ports []model.Port) (numbered, refused []model.Port) {
	present := make(map[device]bool, len(ports))
	for i := range ports {
		present[deviceOf(&ports[i])] = true
	}
	for d, id := range s.of {
		if !present[d] {
			delete(s.of, d)
			s.used[id] = false
		}
	}
	for _, p := range ports {
		id, ok := s.id(deviceOf(&p))
		if !ok {
			refused = append(refused, p)
			continue
		}
		p.ID = id
		numbered = append(numbered, p)
	}
	return numbered, refused
}

func deviceOf(p *model.Port) device { return device{p.Kind, p.Device, p.Ifindex} }

func (s *ids) id(d device) (uint16, bool) {
	if id, ok := s.of[d]; ok {
		return id, true
	}
	for range table.MaxPorts {
		s.last++
		if s.last >= table.MaxPorts {
			s.last = firstID
		}
		if !s.used[s.last] {
			s.used[s.last] = true
			s.of[d] = s.last
			return s.last, true
		}
	}
	return 0, false
}
