package lab

import (
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// cellSpec is what the process of a cell is told at its start.
type cellSpec struct {
	Name     string
	StateDir string // of a node: where a fresh tmpfs and, in it, a bpffs are mounted
}

// runCell is the whole life of a cell's process: own mounts, then serve the lab until the
// control socket closes. The process namespace, and so every child, ends with it.
func runCell(spec cellSpec) error {
	if err := ownMounts(spec); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(spec.Name)); err != nil {
		return fmt.Errorf("host name %s: %w", spec.Name, err)
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	control := os.NewFile(controlFD, "control")
	conn, err := net.FileConn(control)
	if err != nil {
		return fmt.Errorf("control socket (file %d): %w", controlFD, err)
	}
	control.Close()
	server := rpc.NewServer()
	if err := server.RegisterName("Cell", &cellService{spec: spec}); err != nil {
		return err
	}
	server.ServeConn(conn)
	return nil
}

// mountPoint is one mount of a cell.
type mountPoint struct {
	kind, target, options string
}

// ownMounts cuts the cell off from the mounts of the host and gives it views of its own
// processes and devices. Nothing of this is visible outside, and it goes with the cell.
func ownMounts(spec cellSpec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	points := []mountPoint{{"proc", "/proc", ""}, {"sysfs", "/sys", ""}}
	if spec.StateDir != "" {
		points = append(points,
			mountPoint{"tmpfs", spec.StateDir, "mode=0700"},
			mountPoint{"bpf", BPFDir(spec.StateDir), "mode=0700"})
	}
	for _, p := range points {
		if err := os.MkdirAll(p.target, 0o700); err != nil {
			return err
		}
		if err := unix.Mount(p.kind, p.target, p.kind, 0, p.options); err != nil {
			return fmt.Errorf("mount %s on %s: %w", p.kind, p.target, err)
		}
	}
	return nil
}

// BPFDir is where the bpffs of a node is mounted, given its state directory.
func BPFDir(stateDir string) string { return filepath.Join(stateDir, "bpf") }

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("loopback up: %w", err)
	}
	return nil
}

// writeSysctl sets a kernel parameter of the cell, named with dots.
func writeSysctl(name, value string) error {
	path := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("sysctl %s=%s: %w", name, value, err)
	}
	return nil
}
