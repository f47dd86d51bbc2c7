package filetx

import (
	"errors"

	"golang.org/x/sys/unix"
)

// moveTo renames a path to one that must not exist.
func (t *Tree) moveTo(from, to string) error {
	return t.at(from, func(fromDir int, fromBase string) error {
		return t.at(to, func(toDir int, toBase string) error {
			err := unix.Renameat2(fromDir, fromBase, toDir, toBase, unix.RENAME_NOREPLACE)
			if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
				return err
			}
			// A file system without it: a second name never replaces one.
			if err := unix.Linkat(fromDir, fromBase, toDir, toBase, 0); err != nil {
				return err
			}
			return unix.Unlinkat(fromDir, fromBase, 0)
		})
	})
}

// exchange swaps two names at once. The result is 0 or the reason.
func (t *Tree) exchange(a, b string) unix.Errno {
	err := t.at(a, func(aDir int, aBase string) error {
		return t.at(b, func(bDir int, bBase string) error {
			return unix.Renameat2(aDir, aBase, bDir, bBase, unix.RENAME_EXCHANGE)
		})
	})
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		return unix.EIO
	}
	return errno
}

func (t *Tree) remove(name string) error {
	return t.at(name, func(dir int, base string) error { return unix.Unlinkat(dir, base, 0) })
}

func (t *Tree) rmdir(name string) error {
	return t.at(name, func(dir int, base string) error { return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR) })
}

func (t *Tree) mkdir(name string, perm uint32) error {
	return t.at(name, func(dir int, base string) error { return unix.Mkdirat(dir, base, perm) })
}

func (t *Tree) chmod(name string, perm uint32) error {
	return t.at(name, func(dir int, base string) error { return unix.Fchmodat(dir, base, perm, 0) })
}
