package agent

import (
	"context"

	"lace-cni.io/lace/slowpath/attach"
	"lace-cni.io/lace/slowpath/publish"
)

// routeExternal lets the node itself reach the addresses of Services that are in no service
// range, as soon as they are published.
func routeExternal(ctx context.Context, p *publish.Publisher, f *attach.Follower) error {
	for {
		changed := p.Changed()
		if s := p.State(); s != nil && s.Generation > 0 {
			f.SetExternal(s.External)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
