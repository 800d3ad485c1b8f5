package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/preflight"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// newCheck says whether Lace can run on this machine.
func newCheck() *cobra.Command {
	var format screen.Format
	var places preflight.Places
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether Lace can run on this machine, and what to do where it cannot",
		Long: "check looks at kernel, capabilities, devices and what an earlier Lace left behind.\n" +
			"It changes nothing and needs no running Lace. Exit code 1: something must be mended.",
		Args: cobra.NoArgs,
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			findings := preflight.Judge(preflight.Look(places))
			if err := writeFindings(cmd.OutOrStdout(), format, findings); err != nil {
				return err
			}
			if preflight.Failed(findings) {
				return errSaid
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&places.StateDir, "state-dir", stateDir(), "state directory of the node's Lace, else $LACE_STATE_DIR")
	cmd.Flags().StringVar(&places.BPFFS, "bpffs", "/sys/fs/bpf", "BPF file system that Lace pins its objects in")
	formatFlag(cmd, &format)
	return cmd
}

// writeFindings gives each finding a line, and one more for what to do about it.
func writeFindings(w io.Writer, f screen.Format, findings []preflight.Finding) error {
	if f.ForPrograms() {
		return screen.Encode(w, f, api.List[preflight.Finding]{Items: findings})
	}
	paint := screen.Paint{}
	if file, isFile := w.(*os.File); isFile {
		paint = screen.NewPaint(file, false)
	}
	colour := map[preflight.Verdict]func(string) string{
		preflight.OK: paint.Good, preflight.Warn: paint.Warn, preflight.Fail: paint.Bad,
	}
	width := 0
	for _, x := range findings {
		width = max(width, len(x.Check))
	}
	for _, x := range findings {
		screen.Printf(w, "%s  %-*s  %s\n", screen.Painted(colour[x.Verdict](fmt.Sprintf("%-4s", x.Verdict))), width, x.Check, x.Found)
		if x.Do != "" {
			screen.Printf(w, "      %-*s  → %s\n", width, "", x.Do)
		}
	}
	screen.Printf(w, "\n%s\n", outcome(findings))
	return nil
}

// outcome is what all findings come to.
func outcome(findings []preflight.Finding) string {
	count := map[preflight.Verdict]int{}
	for _, x := range findings {
		count[x.Verdict]++
	}
	text := "Lace can run here."
	switch n := count[preflight.Fail]; {
	case n == 1:
		text = "Lace cannot run here yet: 1 thing to mend."
	case n > 1:
		text = fmt.Sprintf("Lace cannot run here yet: %d things to mend.", n)
	}
	if n := count[preflight.Warn]; n > 0 {
		text += fmt.Sprintf(" To know before: %d, marked warn.", n)
	}
	return text
}
