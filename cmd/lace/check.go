package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/preflight"
	"lace-cni.io/lace/cmd/lace/screen"
)

// newCheck says whether Lace can run on this machine, or whether a folder can be given to it.
func newCheck() *cobra.Command {
	var format screen.Format
	var places preflight.Places
	var folder manifestsFolder
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether Lace can run on this machine, or what is wrong in a folder of YAML, and what to do",
		Long: "check looks at kernel, capabilities, devices and what an earlier Lace left behind, and asks a\n" +
			"running agent for its Problems. It looks at the network namespace in which it runs. It changes nothing and needs no running Lace. Exit code 1:\n" +
			"something must be mended; a Problem of one object is none of that.\n\n" +
			"With --source-dir it looks at nothing of the machine, but at a folder of YAML before an agent\n" +
			"gets it: it says the Problems that its objects would be to an agent, with file, document and line;\n" +
			"what only a node knows, such as a pod that has an address, shows there. It needs no privileges and\n" +
			"no running Lace. Exit code 1: there is a Problem.",
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return folder.judge(cmd) },
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			if folder.path != "" {
				return folder.check(cmd, format)
			}
			findings := preflight.Judge(preflight.Look(places))
			if err := writeFindings(cmd.OutOrStdout(), format, findings, outcome(findings)); err != nil {
				return err
			}
			if preflight.Failed(findings) {
				return errSaid
			}
			return nil
		}),
	}
	stateDirFlag(cmd, &places.StateDir)
	cmd.Flags().StringVar(&places.BPFFS, "bpffs", "/sys/fs/bpf", "BPF file system that Lace pins its objects in")
	folder.flags(cmd)
	formatFlag(cmd, &format)
	return cmd
}

// outcome is what all findings about a machine come to.
func outcome(findings []preflight.Finding) string {
	count, problems := map[preflight.Verdict]int{}, 0
	for _, x := range findings {
		if x.Problem != nil {
			problems++
		} else {
			count[x.Verdict]++
		}
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
	if problems > 0 {
		text += fmt.Sprintf(" The agent that runs here has %s.", counted(problems, "Problem"))
	}
	return text
}

// counted is a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
