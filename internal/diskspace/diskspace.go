//go:build unix

// Package diskspace says how much of a disk is left for what. The store and the
// output of the subagents share one, and the store must find room when output
// finds none: the end of a subagent has to be recorded.
package diskspace

import "golang.org/x/sys/unix"

const (
	// maxReserve and reservePercent of the disk, whichever is less, are not given
	// to new subagents.
	maxReserve     = 64 << 20
	reservePercent = 2
	// maxRest, or half of the reserve if that is less, is not used at all: a
	// server that fills the disk has to be reopened.
	maxRest = 1 << 20
)

// Store returns what of a disk of that size is kept from new records, and the
// rest that is kept from every record.
func Store(size uint64) (reserve, rest uint64) {
	reserve = min(maxReserve, size/100*reservePercent)
	return reserve, min(maxRest, reserve/2)
}

// Output returns what of a disk of that size is kept from output: twice what is
// kept from new records, but no more than 64 MiB.
func Output(size uint64) uint64 {
	reserve, _ := Store(size)
	return min(maxReserve, 2*reserve)
}

// Free returns how many bytes of a file's file system are free for us, and its
// size.
func Free(fd int) (free, size uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}
