package rundir

import (
	"os"

	"golang.org/x/sys/unix"
)

// beginSync asks for the file's pages to be written, and waits for nothing. Its
// error is that of the sync that follows.
func beginSync(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}
