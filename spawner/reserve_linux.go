package spawner

import (
	"errors"
	"os"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/rundir"
)

// reserved is the space that a child's files get before it starts, so that it can
// tell its end on a full disk.
var reserved = map[string]int64{
	rundir.ReportFile:     16 << 10,
	rundir.TranscriptFile: 4 << 10,
}

// reserve takes the space of a file; a file system that cannot do that does not.
func reserve(file *os.File, name string) error {
	size := reserved[name]
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// giveBack frees what was reserved and not used, once the child is gone.
func (c *child) giveBack() {
	for name := range reserved {
		file, err := c.dir.OpenAppend(name)
		if err != nil {
			c.log.Warn("reserved space not freed", zap.String("file", name), zap.Error(err))
			continue
		}
		info, err := file.Stat()
		if err == nil {
			err = file.Truncate(info.Size())
		}
		if err = errors.Join(err, file.Close()); err != nil {
			c.log.Warn("reserved space not freed", zap.String("file", name), zap.Error(err))
		}
	}
}
