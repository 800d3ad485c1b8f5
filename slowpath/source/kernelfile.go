package source

import "golang.org/x/sys/unix"

// KernelMakes reports whether an open file is made up by the kernel when it is read: that
// may wait for ever, or take away what others wait for.
func KernelMakes(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && (fs.Type == unix.PROC_SUPER_MAGIC || fs.Type == unix.SYSFS_MAGIC)
}
