package dir

import (
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// problem is a Problem of the folder, and where in it.
type problem struct {
	model.Problem
	place source.Place // zero: the folder as a whole
}

type problems []problem

// told are the Problems as the world gets them.
func (ps problems) told() (out []model.Problem) {
	for i := range ps {
		out = append(out, ps[i].Problem)
	}
	return out
}

// places are where they are; nil: nowhere. Of two that say the same it is the first.
func (ps problems) places() map[model.Problem]source.Place {
	if len(ps) == 0 {
		return nil
	}
	out := make(map[model.Problem]source.Place, len(ps))
	for i := range ps {
		if _, known := out[ps[i].Problem]; !known {
			out[ps[i].Problem] = ps[i].place
		}
	}
	return out
}
