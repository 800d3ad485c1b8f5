package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/cmd/lace/acts"
	"lace-cni.io/lace/cmd/lace/real"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/cmd/lace/simulated"
)

// demo is what the command line says.
type demo struct {
	once        bool
	stay        bool
	sim         bool
	requireReal bool
	plain       bool
	keep        bool
	manifests   string
	lane        string
}

// newDemo shows Lace without a cluster.
func newDemo() *cobra.Command {
	d := &demo{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show Lace at work on this machine, without a cluster",
		Long: "demo builds two nodes, pods and an outside client out of network namespaces, runs Lace\n" +
			"on them and plays acts with real connections, each of which is asserted. In the foreground\n" +
			"of a terminal a live table follows until q is pressed; elsewhere the demo ends, or with\n" +
			"--stay leaves the nodes standing until it is stopped. Everything vanishes with the command.\n\n" +
			"Without the privileges for AF_XDP the same control path and packet pipeline run over\n" +
			"memory, and every line says SIMULATED.",
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case d.sim && d.requireReal:
				return fmt.Errorf("--sim and --require-real exclude each other")
			case d.once && d.stay:
				return fmt.Errorf("--once and --stay exclude each other")
			case d.lane != "on" && d.lane != "off":
				return fmt.Errorf("--lane %q: say on or off", d.lane)
			}
			return nil
		},
		RunE: does(func(cmd *cobra.Command, _ []string) error { return d.run(cmd) }),
	}
	f := cmd.Flags()
	f.BoolVar(&d.once, "once", false, "play the acts and end")
	f.BoolVar(&d.stay, "stay", false, "leave the nodes standing after the acts until the command is stopped, without a live table")
	f.BoolVar(&d.sim, "sim", false, "simulate, even where the real thing could run")
	f.BoolVar(&d.requireReal, "require-real", false, "fail rather than simulate")
	f.BoolVar(&d.plain, "plain", false, "no colour, no live table: a line for each act")
	f.BoolVar(&d.keep, "keep", false, "leave the folder with manifests and logs behind")
	f.StringVar(&d.lane, "lane", "on", "on or off: whether the kernel carries established connections, where it is real")
	f.StringVar(&d.manifests, "manifests", "", "folder of YAML to begin with, copied; it needs the Nodes and the Service web of the usual one")
	return cmd
}

// closingStage is a stage that the demo opened.
type closingStage interface {
	acts.Stage
	Close() error
}

func (d *demo) run(cmd *cobra.Command) (err error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	s, err := d.open(ctx, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	terminal := outTerminal(out)
	paint := screen.Paint{}
	if terminal != nil {
		paint = screen.NewPaint(terminal, d.plain)
	}
	mark := ""
	if s.Simulated() {
		mark = paint.Warn("SIMULATED") + " "
	}
	screen.Printf(out, "%slace demo · manifests: %s\n", screen.Painted(mark), s.Manifests())
	for _, text := range s.Tells() {
		screen.Printf(out, "%s%s\n", screen.Painted(mark), text)
	}
	tally := acts.Play(ctx, s, func(l acts.Line) { fmt.Fprintf(out, "%s%s\n", mark, lineText(paint, l)) })
	if err := d.last(ctx, s, terminal, paint, func(text string) { screen.Printf(out, "%s%s\n", screen.Painted(mark), text) }); err != nil {
		return err
	}
	fmt.Fprintln(out, lastLine(s, tally))
	if tally.Failed > 0 {
		return errSaid
	}
	return nil
}

// last is what follows the acts.
func (d *demo) last(ctx context.Context, s acts.Stage, terminal *os.File, paint screen.Paint, say func(string)) error {
	switch {
	case d.once || ctx.Err() != nil:
	case d.stay:
		say(fmt.Sprintf("the nodes stay until this is stopped, by Ctrl-C or kill %d", os.Getpid()))
		<-ctx.Done()
	case terminal == nil || d.plain:
	case !ownsKeyboard(os.Stdin):
		say("no live table: it needs a keyboard, which a command in the background has not; --stay leaves the nodes standing without")
	default:
		return watch(ctx, s, terminal, paint)
	}
	return nil
}

// open makes the stage that the flags and the privileges allow.
func (d *demo) open(ctx context.Context, errs io.Writer) (closingStage, error) {
	if err := d.judgeManifests(); err != nil {
		return nil, err
	}
	missing := testenv.Missing()
	switch {
	case d.sim:
		return simulated.Start(ctx, d.manifests, d.keep)
	case len(missing) == 0:
		return real.Start(ctx, d.manifests, d.keep, d.lane)
	case d.requireReal:
		return nil, fmt.Errorf("the real demo needs %s: run it as root", strings.Join(missing, ", "))
	}
	fmt.Fprintf(errs, "lace: missing %s: simulating; run as root for the real thing\n", strings.Join(missing, ", "))
	return simulated.Start(ctx, d.manifests, d.keep)
}

// judgeManifests refuses a folder on which every act would fail, and names what it lacks.
// One that cannot be read is refused by who copies it.
func (d *demo) judgeManifests() error {
	if d.manifests == "" {
		return nil
	}
	if _, err := os.Stat(d.manifests); err != nil {
		return fmt.Errorf("--manifests: %w", err)
	}
	if files, _ := filepath.Glob(filepath.Join(d.manifests, "*.yaml")); len(files) == 0 {
		return nil
	}
	missing, err := manifests.Missing(os.DirFS(d.manifests))
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the demo's pods and calls need %s, and %s does not have it: begin with a copy of bench/lab/manifests", strings.Join(missing, ", "), d.manifests)
	}
	return err
}

// lineText is one act on one line.
func lineText(p screen.Paint, l acts.Line) string {
	verdict, text := p.Good("ok  "), screen.Plain(l.Saw)
	if !l.Passed() {
		verdict, text = p.Bad("FAIL"), screen.Plain(l.Err.Error())
	}
	return fmt.Sprintf("%s  %-4s  %-20s  %s", verdict, l.FamilyName(), l.Act, text)
}

// lastLine sums up, alone on its line, for machines to read.
func lastLine(s acts.Stage, t acts.Tally) string {
	if s.Simulated() {
		return t.String() + " (SIMULATED)"
	}
	return t.String()
}

// outTerminal is the terminal that out is, or nil.
func outTerminal(out io.Writer) *os.File {
	if f, isFile := out.(*os.File); isFile && screen.IsTerminal(f) {
		return f
	}
	return nil
}

// clear moves the cursor to the top left corner and clears the screen (ECMA-48).
const clear = "\x1b[H\x1b[2J"

// watch repaints the live table until q is pressed or ctx ends.
func watch(ctx context.Context, s acts.Stage, terminal *os.File, paint screen.Paint) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	restore, err := onKey(os.Stdin, 'q', quit)
	if err != nil {
		return err
	}
	defer restore()
	acts.Watch(ctx, s, func(v acts.View) { fmt.Fprint(terminal, clear+v.Render(paint)) })
	return nil
}
