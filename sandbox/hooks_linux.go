package sandbox

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// makeHooks makes the directory of a repository's hooks where it is missing, as git
// does with every new repository: what exists can be kept from being written. It
// belongs to whom the repository belongs to. No link is followed. It reports
// whether the directory is there; where it cannot be made it stays missing.
func makeHooks(path string) bool {
	dir, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(path), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	if unix.Fstatat(dir, "HEAD", &st, unix.AT_SYMLINK_NOFOLLOW) != nil || unix.Fstat(dir, &st) != nil {
		return false
	}
	name := filepath.Base(path)
	if err := unix.Mkdirat(dir, name, 0o755); err != nil {
		return err == unix.EEXIST
	}
	if st.Uid == uint32(unix.Geteuid()) {
		return true
	}
	return unix.Fchownat(dir, name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW) == nil
}
