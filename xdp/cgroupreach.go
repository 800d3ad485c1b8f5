package xdp

// ReachCgroupRoot says why AttachSockets would not find the root of the cgroup2 hierarchy
// from here; nil: it would. It changes nothing, and needs CAP_SYS_ADMIN only where the
// hierarchy is not mounted.
func ReachCgroupRoot() error {
	root, err := openCgroupRoot()
	if err != nil {
		return err
	}
	return root.Close()
}
