package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/manifests"
)

// folderPattern names the folders of labs in the temporary directory.
const folderPattern = "lace-lab-"

// folder is the one thing of a lab that lives on the host's file system: the YAML that
// people edit, and logs. A lock on a file in it says that its lab is alive.
type folder struct {
	path string
	lock *os.File
}

func newFolder(t *Topology) (*folder, error) {
	removeStaleFolders(os.TempDir())
	path, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return nil, fmt.Errorf("folder of the lab: %w", err)
	}
	f := &folder{path: path}
	if f.lock, err = lockFile(f.lockPath()); err != nil {
		os.RemoveAll(path)
		return nil, err
	}
	return f, errors.Join(CopyManifests(t.Manifests, f.manifests()), f.makeNodes(t.cast()))
}

func (f *folder) lockPath() string            { return filepath.Join(f.path, "lock") }
func (f *folder) manifests() string           { return filepath.Join(f.path, "manifests") }
func (f *folder) stateDir(node string) string { return filepath.Join(f.path, node, "state") }
func (f *folder) log(node, role string) string {
	return filepath.Join(f.path, node, role+".log")
}

func (f *folder) makeNodes(nodes []*nodeSpec) error {
	for _, n := range nodes {
		if err := os.MkdirAll(f.stateDir(n.name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// CopyManifests makes the folder to and copies the YAML of another one into it; the empty
// one means that of the lab.
func CopyManifests(source, to string) error {
	var from fs.FS = manifests.Files
	if source != "" {
		from = os.DirFS(source)
	}
	names, err := fs.Glob(from, "*.yaml")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("manifests: no *.yaml file in %s", source)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		b, err := fs.ReadFile(from, name)
		if err != nil {
			return fmt.Errorf("manifests: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
			return fmt.Errorf("manifests: %w", err)
		}
	}
	return nil
}

// close removes the folder, or only its lock when it is to be kept.
func (f *folder) close(keep bool) error {
	if keep {
		return errors.Join(os.Remove(f.lockPath()), f.lock.Close())
	}
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

func lockFile(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return lock, nil
}

// staleAfter leaves a lab that is just being made the time to take its lock.
const staleAfter = time.Minute

// removeStaleFolders removes what labs left behind that were killed: folders with a lock
// file that nobody holds. Kept folders have none. Failures are left to the next start.
func removeStaleFolders(dir string) {
	locks, _ := filepath.Glob(filepath.Join(dir, folderPattern+"*", "lock"))
	for _, path := range locks {
		st, err := os.Stat(path)
		if err != nil || time.Since(st.ModTime()) < staleAfter {
			continue
		}
		if lock, err := lockFile(path); err == nil {
			os.RemoveAll(filepath.Dir(path))
			lock.Close()
		}
	}
}
