package manifests

import (
	"fmt"
	"os"
	"path/filepath"
)

// Save puts a file into a folder of manifests: readers see the old content or the new
// one, never a part. The name decides whether it is read: *.yaml.
func Save(dir, name string, content []byte) error {
	temp, err := os.CreateTemp(dir, ".saving-*")
	if err != nil {
		return fmt.Errorf("manifest %s: %w", name, err)
	}
	defer os.Remove(temp.Name())
	if _, err := temp.Write(content); err != nil {
		temp.Close()
		return fmt.Errorf("manifest %s: %w", name, err)
	}
	if err := temp.Close(); err != nil {
		return fmt.Errorf("manifest %s: %w", name, err)
	}
	if err := os.Rename(temp.Name(), filepath.Join(dir, name)); err != nil {
		return fmt.Errorf("manifest %s: %w", name, err)
	}
	return nil
}
