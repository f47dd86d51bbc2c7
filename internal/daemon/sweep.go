package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/internal/childbin"
)

// sweepBinaries removes the supervisors that earlier versions unpacked and that
// no live subagent executes. What cannot be removed is only disk space.
func (d *daemon) sweepBinaries(current string, stored []coordinator.Stored) {
	removed, err := childbin.Sweep(d.opts.Paths.Bin(), current, executing(stored))
	if err != nil {
		d.log.Warn("remove the supervisors of earlier versions", zap.Error(err))
	}
	if len(removed) > 0 {
		d.log.Info("removed the supervisors of earlier versions", zap.Strings("files", removed))
	}
}

// executing returns what tells whether a live subagent executes a file. A process
// that may not be looked at may execute any of them.
func executing(stored []coordinator.Stored) func(fs.FileInfo) bool {
	var running []fs.FileInfo
	unknown := false
	for _, s := range stored {
		if !s.Record.Live() || s.Record.Process == nil {
			continue
		}
		info, err := os.Stat(fmt.Sprintf("/proc/%d/exe", s.Record.Process.PID))
		switch {
		case err == nil:
			running = append(running, info)
		case !errors.Is(err, fs.ErrNotExist):
			unknown = true
		}
	}
	return func(file fs.FileInfo) bool {
		for _, exe := range running {
			if os.SameFile(exe, file) {
				return true
			}
		}
		return unknown
	}
}
