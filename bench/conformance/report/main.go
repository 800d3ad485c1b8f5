package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"

	"lace-cni.io/lace/cmd/usage"
)

type options struct {
	excluded, focus, record, from, insert string
	run                                   Run // what the reports do not say
	reports                               []string
}

// flags declares every flag.
func flags(o *options) *flag.FlagSet {
	f := flag.NewFlagSet("conformance-report", flag.ContinueOnError)
	f.StringVar(&o.excluded, "excluded", "", "`file` of tests that are left out, with reasons")
	f.StringVar(&o.focus, "focus", `\[sig-network\]`, "`expression`: judge the tests whose names match")
	f.StringVar(&o.record, "record", "", "keep the run in this `file`")
	f.StringVar(&o.from, "from", "", "take a run that was kept in this `file`")
	f.StringVar(&o.insert, "insert", "", "put the run into this `document`, between its marks")
	f.StringVar(&o.run.Kubernetes, "kubernetes", "", "`version` that was run")
	f.StringVar(&o.run.Carrier, "carrier", "lace", "`name` of what carried the packets")
	f.StringVar(&o.run.Revision, "revision", "unknown", "`revision` of Lace")
	f.IntVar(&o.run.Nodes, "nodes", 3, "`number` of nodes")
	f.StringVar(&o.run.Note, "note", "", "`text`: how the run came about, when not by one call of make")
	return f
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flags(o)
	if err := usage.Parse(f, args); err != nil {
		return nil, err
	}
	o.reports = f.Args()
	if (o.from == "") == (len(o.reports) == 0) {
		return nil, errors.New("name either reports of ginkgo, or a kept run with --from")
	}
	return o, nil
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		usage.Write(os.Stdout, flags(new(options)), "judges a run of Kubernetes' own tests", "[report.json...]")
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "conformance-report: %v\nTry: conformance-report --help\n", err)
		os.Exit(2)
	}
	run, err := o.do()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance-report:", err)
		os.Exit(2)
	}
	if o.insert == "" && !run.ok() {
		os.Exit(1)
	}
}

func (o *options) do() (*Run, error) {
	run, err := o.take()
	if err != nil {
		return nil, err
	}
	if o.record != "" {
		if err := run.write(o.record); err != nil {
			return nil, err
		}
	}
	if o.insert != "" {
		return run, insertFile(o.insert, run)
	}
	run.text(os.Stdout)
	return run, nil
}

func (o *options) take() (*Run, error) {
	if o.from != "" {
		return readRun(o.from)
	}
	focus, err := regexp.Compile(o.focus)
	if err != nil {
		return nil, err
	}
	out, err := readExclusions(o.excluded)
	if err != nil {
		return nil, err
	}
	var suites []*suite
	for _, path := range o.reports {
		s, err := readSuite(path)
		if err != nil {
			return nil, err
		}
		suites = append(suites, s)
	}
	run := judge(suites, focus, out)
	run.Kubernetes, run.Carrier, run.Revision, run.Nodes, run.Note = o.run.Kubernetes, o.run.Carrier, o.run.Revision, o.run.Nodes, o.run.Note
	return run, nil
}
