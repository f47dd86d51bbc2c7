//go:build !unix

package policy

import (
	"io/fs"
	"syscall"
)

const errNotDir = syscall.ENOTDIR

// Links is not known on this system.
func Links(fs.FileInfo) uint64 { return 1 }
