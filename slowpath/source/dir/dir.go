package dir

import (
	"context"
	"log/slog"
	"time"

	"lace-cni.io/lace/slowpath/source"
)

// Dir is a source that reads a folder of YAML.
type Dir struct {
	Path   string
	Settle time.Duration // quiet time awaited after a change
	Poll   time.Duration // how often the folder is looked at without being told
	Log    *slog.Logger
}

// New returns a source over the folder with its default times.
func New(path string) *Dir { return &Dir{Path: path} }

// Run implements source.Source.
func (d *Dir) Run(ctx context.Context, sink source.Sink) error { <-ctx.Done(); return nil }
