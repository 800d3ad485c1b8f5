package main

import (
	"io"
	"testing"

	"lace-cni.io/lace/docs/commandline"
)

func program(t *testing.T) *commandline.Program {
	return &commandline.Program{
		Root: "../../..", Name: "lace-latency", Variable: "LATENCY", Page: "docs/reference/latency.md",
		Flags: flags(new(options)),
		Parse: func(args []string) error { _, err := parse(args); return err },
		Run:   func(args []string, out, errs io.Writer) int { return run(t.Context(), args, out, errs) },
		Wrong: exitUsage,
	}
}

func TestCommandLinesOfPages(t *testing.T)              { program(t).HoldPages(t) }
func TestThePageSpellsFlagsWithTwoHyphens(t *testing.T) { program(t).HoldPage(t) }
func TestHelpIsOutput(t *testing.T)                     { program(t).HoldHelp(t) }
