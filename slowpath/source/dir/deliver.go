package dir

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// deliver compares what the files say with what was delivered. triggers says when each
// file that was read, or is gone, changed.
func (d *folder) deliver(triggers map[string]time.Time) (out []source.Change) {
	now := make(map[objectKey]*Object, len(d.delivered))
	latest := time.Time{}
	for _, t := range triggers {
		if t.After(latest) {
			latest = t
		}
	}
	for p := range d.each {
		k := p.key()
		if _, taken := now[k]; taken || len(now) >= d.limits.objects {
			continue
		}
		was, known := d.delivered[k]
		now[k] = p.Object
		if known && (was.Object == p.Object.Object || reflect.DeepEqual(was.Object, p.Object.Object)) {
			continue
		}
		trigger, read := triggers[p.file.name]
		if !read { // another file let go of it
			trigger = latest
		}
		out = append(out, source.Change{Kind: p.Kind, Name: p.Name, Object: p.Object.Object, Trigger: trigger})
	}
	for k := range d.delivered {
		if _, there := now[k]; !there {
			out = append(out, source.Change{Kind: k.kind, Name: k.name, Trigger: latest})
		}
	}
	d.delivered = now
	slices.SortFunc(out, func(a, b source.Change) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), model.Name.Compare(a.Name, b.Name))
	})
	return out
}
