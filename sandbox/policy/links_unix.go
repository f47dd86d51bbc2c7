//go:build unix

package policy

import (
	"io/fs"
	"syscall"
)

// errNotDir is that of a path through a file, errLoop that of links in a circle.
const (
	errNotDir = syscall.ENOTDIR
	errLoop   = syscall.ELOOP
)

// Identity tells one file from all others.
type Identity struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

// IdentityOf returns the identity of a file.
func IdentityOf(info fs.FileInfo) Identity {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return Identity{uint64(st.Dev), uint64(st.Ino)}
	}
	return Identity{}
}

// Links returns how many hard links a file has.
func Links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
