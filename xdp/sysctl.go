package xdp

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// sysctl sets a kernel parameter of the calling thread's network namespace, unless it has
// the value already. One that does not exist (no IPv6) is left out.
func sysctl(name, value string) error {
	path := "/proc/sys/" + name
	have, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && strings.TrimSpace(string(have)) == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("kernel parameter %s = %s: %w", name, value, err)
	}
	return nil
}
