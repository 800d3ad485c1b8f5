package xdp

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Watch gives notice of every change of the trunk's devices until ctx ends: time for an
// Audit. Notices are merged, and the kernel may lose some; so audit now and then without
// one.
func (t *Trunk) Watch(ctx context.Context) (<-chan struct{}, error) {
	notices := make(chan struct{}, 1)
	inside := netns.NsHandle(t.ns.file.Fd())
	for _, end := range []struct {
		name      string
		ifindex   int
		namespace *netns.NsHandle
	}{{lace0, t.Lace0, nil}, {lace1, t.Lace1, &inside}} {
		updates := make(chan netlink.LinkUpdate)
		err := netlink.LinkSubscribeWithOptions(updates, ctx.Done(), netlink.LinkSubscribeOptions{Namespace: end.namespace})
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", end.name, err)
		}
		go forward(updates, int32(end.ifindex), notices)
	}
	return notices, nil
}

// forward gives notice of what concerns one device, until updates end.
func forward(updates <-chan netlink.LinkUpdate, ifindex int32, notices chan<- struct{}) {
	for u := range updates {
		if u.Index != ifindex {
			continue
		}
		select {
		case notices <- struct{}{}:
		default:
		}
	}
}
