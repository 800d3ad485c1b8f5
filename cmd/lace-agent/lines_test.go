package main

import (
	"flag"
	"io"
	"testing"

	"lace-cni.io/lace/docs/commandline"
)

// daemon is what pages tell people to start.
var daemon = commandline.Daemon{
	Root: "../..", Name: "lace-agent", Least: 10, Flag: "--service-cidrs",
	Flags: func() *flag.FlagSet { return flags(new(options)) },
	Parse: func(args []string) error {
		_, err := parse(args, io.Discard)
		return err
	},
	Run: run,
}

func TestCommandLinesOfPages(t *testing.T) { daemon.HoldPages(t) }
func TestHelpIsOutput(t *testing.T)        { daemon.HoldHelp(t) }
