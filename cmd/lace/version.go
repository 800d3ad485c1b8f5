package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/fastpath/table"
)

// unversioned is what a build says to which nobody gave a version.
const unversioned = "unknown"

// version is set by the linker.
var version = unversioned

// build says what this executable is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // commit, with "+" when files had been changed
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Layout   uint32 `json:"snapshotLayout"` // of snapshot files that it reads and writes
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Layout: table.Layout}
	in, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := in.Main.Version; b.Version == unversioned && v != "" && v != "(devel)" {
		b.Version = v // installed as a module, without the Makefile
	}
	changed := ""
	for _, s := range in.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	b.Revision += changed
	return b
}

var buildColumns = []screen.Column[build]{
	{Title: "VERSION", Value: func(b build) string { return b.Version }},
	{Title: "GO", Value: func(b build) string { return b.Go }},
	{Title: "PLATFORM", Value: func(b build) string { return b.Platform }},
	{Title: "SNAPSHOT-LAYOUT", Value: func(b build) string { return figure(b.Layout) }},
	{Title: "REVISION", Wide: true, Value: func(b build) string { return b.Revision }},
}

// newVersion says what this executable is.
func newVersion() *cobra.Command {
	var format screen.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say what this executable is",
		Args:  cobra.NoArgs,
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			if format.ForPrograms() {
				return screen.Encode(cmd.OutOrStdout(), format, thisBuild())
			}
			return screen.WriteTable(cmd.OutOrStdout(), format, buildColumns, []build{thisBuild()})
		}),
	}
	formatFlag(cmd, &format)
	return cmd
}
