package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

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
		if err := r.removeDirectory(*rec); err != nil {
			return []string{"its directory cannot be removed"}, err
		}
	}
	rec.Kept = kept
	return kept, r.Write(*rec)
}

// removeDirectory removes the working tree and what belongs to it, but not the
// record and the lease.
func (r Root) removeDirectory(rec Record) *events.Error {
	for _, name := range []string{rec.Name, gitName, indexFile, blobsDir} {
		if err := r.removeBelow(filepath.Join(rec.ID, name)); err != nil {
			return workFailed(rec.ID, "remove its directory", err)
		}
	}
	return nil
}

// forget removes everything of a tree below the root, its record last.
func (r Root) forget(id string) *events.Error {
	if err := checkID(id); err != nil {
		return err
	}
	root, err := os.OpenRoot(r.path)
	if err != nil {
		return workFailed(id, "remove its directory", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), id)
	for _, e := range entries {
		if err == nil && e.Name() != recordFile && e.Name() != leaseFile {
			err = removeWritable(root, filepath.Join(id, e.Name()))
		}
	}
	if err == nil {
		err = root.RemoveAll(id)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return workFailed(id, "remove its directory", err)
	}
	return nil
}

// removeBelow removes a path below the root, which is resolved beneath it.
func (r Root) removeBelow(name string) error {
	root, err := os.OpenRoot(r.path)
	if err != nil {
		return err
	}
	return errors.Join(removeWritable(root, name), root.Close())
}

// removeWritable removes a tree whose directories need not be writable.
func removeWritable(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// A directory is opened before it is listed.
	open := func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = root.Chmod(path, 0o700)
		}
		return err
	}
	if err := fs.WalkDir(root.FS(), name, open); err != nil {
		return err
	}
	return root.RemoveAll(name)
}
