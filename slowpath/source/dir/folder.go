package dir

import (
	"fmt"
	"hash/maphash"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// objectKey identifies an object among all files.
type objectKey struct {
	kind source.Kind
	name model.Name
}

func (o *Object) key() objectKey { return objectKey{o.Kind, o.Name} }

// folder is the state of the folder as it was last looked at.
type folder struct {
	path   string
	settle time.Duration // how long a file must be quiet
	most   time.Duration // and how long it is waited for at most
	limits limits

	patience patience
	open     func(path string, most int64) ([]byte, version, error) // read, but in tests
	seed     maphash.Seed

	files     []*file               // by name
	delivered map[objectKey]*Object // another one when something has changed
	problems  []model.Problem       // as delivered
	places    Places                // as of the last look
	clashing  problems              // between files
	crowded   problems              // more files than can be read
	unread    problems              // why the folder itself could not be read
}

func newFolder(path string, settle time.Duration) *folder {
	return &folder{
		path: path, settle: settle, most: 20 * settle, limits: defaultLimits, seed: maphash.MakeSeed(),
		delivered: map[objectKey]*Object{}, patience: newPatience(), open: read,
	}
}

// outcome is what one look at the folder found.
type outcome struct {
	changes  []source.Change
	problems []model.Problem
	news     bool          // changes or problems differ from before
	again    time.Duration // look again after this long, because something is not quiet yet; 0: no need
	readable bool
	err      error // why the folder itself could not be read
}

// look reads what changed since the last look. now is the time of it, and noticed when
// the first sign of a change was seen.
func (d *folder) look(now, noticed time.Time) (out outcome) {
	d.patience.tidy()
	found, beyond, err := d.list()
	if err != nil {
		d.unread = d.wrong("FolderUnreadable", "the folder cannot be read: %v; all objects stay as they were, and it is looked for again every second", err)
		return d.conclude(outcome{err: err}, nil)
	}
	d.unread, d.crowded = nil, d.tooMany(beyond)
	l := looking{folder: d, now: now, noticed: noticed, triggers: map[string]time.Time{}}
	l.meet(found)
	out.again, out.readable = l.again, true
	return d.conclude(out, l.triggers)
}

// wrong is a Problem of the folder as a whole.
func (d *folder) wrong(reason, format string, args ...any) problems {
	return problems{{Problem: model.Problem{Kind: "File", Object: d.path, Reason: reason, Message: fmt.Sprintf(format, args...)}}}
}

func (d *folder) tooMany(beyond int) problems {
	if beyond == 0 {
		return nil
	}
	return d.wrong("TooManyFiles", "%d files are not read: at most %d are, those that were there first and then in the order of their names; put several documents into one file", beyond, d.limits.files)
}

// conclude works out what to deliver.
func (d *folder) conclude(out outcome, triggers map[string]time.Time) outcome {
	if len(triggers) > 0 {
		out.changes, d.clashing = d.deliver(triggers), d.clashes()
	}
	all := slices.Concat(d.unread, d.crowded)
	for _, f := range d.files {
		all = append(all, f.problems...)
	}
	all = append(all, d.clashing...)
	told := all.told()
	out.news = len(out.changes) > 0 || !slices.Equal(told, d.problems)
	d.problems, out.problems = told, told
	d.places = Places{d.delivered, all.places()}
	return out
}

// placed is an object and where it is.
type placed struct {
	*Object
	file *file
	kept bool
}

// each yields every object of every file in order of precedence: what files say now
// before what wrong ones said, then by file name, then by place in the file.
func (d *folder) each(yield func(placed) bool) {
	for _, kept := range []bool{false, true} {
		for _, f := range d.files {
			objects := f.objects
			if kept {
				objects = f.kept
			}
			for i := range objects {
				if !yield(placed{&objects[i], f, kept}) {
					return
				}
			}
		}
	}
}

// clashes names objects that are in more than one place, and those beyond the limit.
func (d *folder) clashes() (out problems) {
	first := map[objectKey]*Object{}
	beyond := 0
	for p := range d.each {
		used, taken := first[p.key()]
		switch {
		case taken && !p.kept:
			out = append(out, twice(p.Object, used))
		case taken:
		case len(first) >= d.limits.objects:
			beyond++
		default:
			first[p.key()] = p.Object
		}
	}
	if beyond > 0 {
		out = append(out, d.wrong("TooManyObjects", "%d objects are not read: at most %d are, in the order of file names; remove some", beyond, d.limits.objects)...)
	}
	return out
}

// twice is the Problem of an object that is used as it is written elsewhere.
func twice(o, used *Object) problem {
	return problem{
		model.Problem{
			Kind: "File", Object: documentName(o.Place.File, o.Place.Document), Field: o.Place.Item, Reason: "DuplicateObject",
			Message: fmt.Sprintf("%s %s is at %s too, which is used; remove it from one of the two places", o.Kind, nameFor(o), used.Place),
		},
		o.Place,
	}
}

func nameFor(o *Object) string {
	if o.Name.Namespace == "" {
		return o.Name.Name
	}
	return strings.Trim(o.Name.String(), "/")
}

func (d *folder) file(name string) (int, bool) {
	return slices.BinarySearchFunc(d.files, name, func(f *file, n string) int { return strings.Compare(f.name, n) })
}

func (d *folder) full(name string) string { return filepath.Join(d.path, name) }
