//go:build unix

package policy

import (
	"io/fs"
	"syscall"
)

// errNotDir is that of a path through a file.
const errNotDir = syscall.ENOTDIR

// Links returns how many hard links a file has.
func Links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
