// Package daemonlog is how the two processes of a node write their log: as whoever starts them
// says by flags.
//
// It owns the flags of the log and the form of its lines, in which no name from outside is
// more than text. It must never write anything itself.
package daemonlog

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// Options are what the flags say.
type Options struct {
	format string // text, json or auto
	level  slog.Level
}

// Flags adds the flags of the log to those of a command.
func (o *Options) Flags(f *flag.FlagSet) {
	f.StringVar(&o.format, "log-format", "auto", "`format` of log lines: text, json, or auto (text on a terminal, else json)")
	f.TextVar(&o.level, "log-level", slog.LevelInfo, "least `level` of log lines: DEBUG, INFO, WARN or ERROR")
}

// Judge refuses a format that there is not.
func (o *Options) Judge() error {
	switch o.format {
	case "text", "json", "auto":
		return nil
	}
	return fmt.Errorf("--log-format %q: say text, json or auto", o.format)
}

// Log writes to w.
func (o *Options) Log(w io.Writer) *slog.Logger {
	with := &slog.HandlerOptions{Level: o.level}
	f, isFile := w.(*os.File)
	if o.format == "text" || o.format == "auto" && isFile && term.IsTerminal(int(f.Fd())) {
		return slog.New(slog.NewTextHandler(w, with))
	}
	return slog.New(slog.NewJSONHandler(w, with))
}
