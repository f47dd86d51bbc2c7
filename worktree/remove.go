package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/hayward-dev/hayward/events"
)

// removeSaved removes the working tree of an ended subagent and our git
// directory for it, if everything in it is in the refs or in the user's working
// tree. Else it returns why not. The caller holds repository lock and lease.
func (r Root) removeSaved(ctx context.Context, rec *Record) (kept []string, err *events.Error) {
	if kept, err = r.unsaved(ctx, *rec); err != nil {
		kept = append(kept, "it cannot be compared with what is saved: "+err.Message)
	}
	if len(kept) == 0 {
		if err := r.removeDirectory(rec.ID); err != nil {
			return []string{"its directory cannot be removed"}, err
		}
		rec.Bytes, rec.Files = 0, 0
	}
	rec.Kept = kept
	return kept, r.Write(*rec)
}

// removeDirectory removes the working tree and all that belongs to it, but not
// the record and the lease.
func (r Root) removeDirectory(id string) *events.Error {
	if err := checkID(id); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.Dir(id))
	for _, e := range entries {
		if err == nil && e.Name() != recordFile && e.Name() != leaseFile {
			err = removeTree(r.Dir(id), e.Name())
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return workFailed(id, "remove its directory", err)
	}
	return nil
}
