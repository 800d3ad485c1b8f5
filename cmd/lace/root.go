package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// run carries out one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	cmd, err := root.ExecuteContextC(ctx)
	code := exitCode(err)
	if err != nil && !errors.Is(err, errSaid) {
		screen.Printf(errs, "lace: %v\n", err)
	}
	if code == exitUsage {
		fmt.Fprintf(errs, "Try: %s --help\n", cmd.CommandPath())
	}
	return code
}

// newRoot builds the whole tree of commands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "lace",
		Short:         "Kubernetes Services carried by AF_XDP",
		Long:          "lace shows, checks and explains a Lace node, and demonstrates Lace without a cluster.",
		Version:       thisBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newDemo(), newCheck(), newGet(), newExplain(), newVersion())
	return root
}

// noCommand refuses words that are no command, here or below.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("no such command: %s %s", cmd.CommandPath(), args[0])
}

// node is the agent that a command asks.
type node struct{ stateDir string }

// stateDir is the default: that of the two processes of a node, unless the environment
// names another one.
func stateDir() string {
	if dir := os.Getenv("LACE_STATE_DIR"); dir != "" {
		return dir
	}
	return "/run/lace"
}

func (n *node) flag(cmd *cobra.Command) {
	stateDirFlag(cmd, &n.stateDir)
}

// stateDirFlag adds --state-dir. Help tells how the default comes about, not what it comes to.
func stateDirFlag(cmd *cobra.Command, dir *string) {
	const name = "state-dir"
	f := cmd.PersistentFlags()
	f.StringVar(dir, name, stateDir(), "state directory of the node's Lace")
	f.Lookup(name).DefValue = "$LACE_STATE_DIR, else /run/lace"
}

func (n *node) client() *api.Client {
	return api.NewClient(filepath.Join(n.stateDir, "agent.sock"))
}

// formatFlag adds -o.
func formatFlag(cmd *cobra.Command, f *screen.Format) {
	*f = screen.Table
	cmd.Flags().VarP(f, "output", "o", "format: "+screen.Choices())
}

// does turns the errors of a command's work into failures, so that mistakes of the
// command line can be told from them.
func does(work func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := work(cmd, args); err != nil {
			return failure{err}
		}
		return nil
	}
}
