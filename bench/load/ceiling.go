package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
)

// Ceiling is how fast the frame generator is when its frames are dropped at the other end
// of its device: what no mode can exceed.
func Ceiling(ctx context.Context, s *Space, cpu int, d time.Duration) (c Cost, err error) {
	const near, far = "ceiling0", "ceiling1"
	attributes := netlink.NewLinkAttrs()
	attributes.Name = near
	if err := s.links.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: far}); err != nil {
		return c, fmt.Errorf("add %s in %s: %w", near, s.name, err)
	}
	defer func() {
		l, e := s.links.LinkByName(near)
		if e == nil {
			e = s.links.LinkDel(l)
		}
		err = errors.Join(err, e)
	}()
	for _, name := range []string{near, far} {
		l, err := s.links.LinkByName(name)
		if err != nil {
			return c, err
		}
		if err := s.links.LinkSetUp(l); err != nil {
			return c, fmt.Errorf("set %s up: %w", name, err)
		}
	}
	end, err := OpenFloor(s, far)
	if err != nil {
		return c, err
	}
	defer end.Close()
	g, err := OpenFrames(s, near)
	if err != nil {
		return c, err
	}
	defer g.Close()
	err = g.Use(Flows{From: netip.AddrFrom4([4]byte{192, 0, 2, 0}), To: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, 1}), 80), Count: 4096})
	if err != nil {
		return c, err
	}
	return g.Run(ctx, Loop{CPU: cpu, For: d, Arrived: end.Taken})
}
