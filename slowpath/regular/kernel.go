package regular

import "golang.org/x/sys/unix"

// kernelMakes reports whether an open file is made up by the kernel when it is read: that
// may wait for ever, or take away what others wait for.
func kernelMakes(fd uintptr) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(int(fd), &fs) == nil && (fs.Type == unix.PROC_SUPER_MAGIC || fs.Type == unix.SYSFS_MAGIC)
}
