package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lace-cni.io/lace/bench/suite/measure"
	"lace-cni.io/lace/bench/suite/plan"
	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/rig"
	"lace-cni.io/lace/cmd/usage"
)

// options are the flags as given.
type options struct {
	kind     string
	modes    list
	loads    list
	services numbers
	paths    list
	rounds   int
	each     time.Duration
	budget   time.Duration
	json     string
	from     string
	given    map[string]bool // flags of the command line
	markdown bool
	insert   string
	quiet    bool
}

// flags declares every flag.
func flags(o *options) *flag.FlagSet {
	f := flag.NewFlagSet("lace-bench", flag.ContinueOnError)
	f.StringVar(&o.kind, "kind", plan.Bench, "`kind` of run: smoke (less than a minute, no timing means anything), bench (a quarter of an hour) or full (hours)")
	f.Var(&o.modes, "modes", "only these `modes`, separated by commas: "+strings.Join(rig.Names(), ", "))
	f.Var(&o.loads, "loads", "only these `loads`, separated by commas: "+strings.Join(measure.Names(), ", "))
	f.Var(&o.services, "services", "only these `numbers` of services, separated by commas")
	f.Var(&o.paths, "paths", "only these `paths`, separated by commas: node, across, outside")
	f.IntVar(&o.rounds, "rounds", 0, "`number` of rounds; 0: as the kind of run says")
	f.DurationVar(&o.each, "for", 0, "`time` of one measurement; 0: as the kind of run says")
	f.DurationVar(&o.budget, "budget", 0, "`time` within which the last round must end; 0: as the kind of run says")
	f.StringVar(&o.json, "json", "", "`file` to record the run in")
	f.StringVar(&o.from, "from", "", "measure nothing, report the run recorded in this `file`")
	f.BoolVar(&o.markdown, "markdown", false, "write the table for a document, and nothing else")
	f.StringVar(&o.insert, "insert", "", "put figures and goals of the run given by --from into this `document`, between its marks")
	f.BoolVar(&o.quiet, "quiet", false, "do not say on standard error what is being done")
	return f
}

func parse(args []string) (*options, error) {
	o := new(options)
	f := flags(o)
	if err := usage.Parse(f, args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag: flags are all there is", f.Arg(0))
	}
	o.given = map[string]bool{}
	f.Visit(func(x *flag.Flag) { o.given[x.Name] = true })
	if err := o.sensible(); err != nil {
		return nil, err
	}
	return o, nil
}

// shortest is the least time that a measurement can be of.
const shortest = time.Millisecond

// measuring are the flags that say what to measure, or what to do with it.
var measuring = []string{"kind", "modes", "loads", "services", "paths", "rounds", "for", "budget", "json"}

// sensible says what is wrong with the flags, each by itself and together.
func (o *options) sensible() error {
	for name, value := range map[string]string{"from": o.from, "json": o.json, "insert": o.insert} {
		if o.given[name] && value == "" {
			return fmt.Errorf("--%s is empty: name a file", name)
		}
	}
	for _, name := range measuring {
		if o.from != "" && o.given[name] {
			return fmt.Errorf("--from measures nothing: leave out --%s, or --from", name)
		}
	}
	if o.insert != "" && o.from == "" {
		return errors.New("--insert needs --from: name the recorded run")
	}
	if o.rounds < 0 || o.each < 0 || o.budget < 0 {
		return errors.New("--rounds, --for and --budget cannot be negative")
	}
	if o.each > 0 && o.each < shortest {
		return fmt.Errorf("--for %s is too short to measure anything: %s at least", o.each, shortest)
	}
	return nil
}

// plan is what the flags ask for.
func (o *options) plan() (*plan.Plan, error) {
	p, err := plan.New(o.kind)
	if err != nil {
		return nil, err
	}
	var paths []rig.Path
	for _, s := range o.paths {
		if !slices.Contains(rig.Paths, rig.Path(s)) {
			return nil, fmt.Errorf("no path %q: there are %v", s, rig.Paths)
		}
		paths = append(paths, rig.Path(s))
	}
	for _, m := range o.modes {
		if _, err := rig.Find(m); err != nil {
			return nil, err
		}
	}
	for _, l := range o.loads {
		if _, err := measure.Find(l); err != nil {
			return nil, err
		}
	}
	p.Narrow(o.modes, o.loads, o.services, paths)
	if o.rounds > 0 {
		p.Rounds = o.rounds
	}
	if o.each > 0 {
		p.Times.For = o.each
	}
	if o.budget > 0 {
		p.Budget = o.budget
	}
	return p, nil
}

// recordable says, before anything is measured, when a run could not be kept.
func (o *options) recordable() error {
	if o.json == "" {
		return nil
	}
	if err := record.Writable(o.json); err != nil {
		return fmt.Errorf("the run could not be recorded: --json: %w", err)
	}
	return nil
}

// keep records a run where that was asked for.
func (o *options) keep(r *record.Run) error {
	if o.json == "" {
		return nil
	}
	return r.Write(o.json)
}

// keepPart records, where that was asked for, what there is of a run that was not completed.
func (o *options) keepPart(r *record.Run, why error) error {
	if o.json == "" {
		return why
	}
	return r.WritePart(o.json, why)
}

// list is a flag with words.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *list) Set(s string) error {
	*l = strings.Split(s, ",")
	return nil
}

// numbers is a flag with numbers.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint([]int(*n))), ","), "[]")
}

// Set implements flag.Value.
func (n *numbers) Set(s string) error {
	*n = nil
	for part := range strings.SplitSeq(s, ",") {
		v, err := strconv.Atoi(part)
		if err != nil || v < 1 {
			return fmt.Errorf("%q is no number of services", part)
		}
		*n = append(*n, v)
	}
	return nil
}
