//go:build unix

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// deferred notes what was written and not synced.
type deferred struct {
	mu sync.Mutex
	// files are the names by id; guarded by mu.
	files map[string][]string
}

// Deferred returns a handle of the same directory whose writes do not wait for the
// disk: [Root.Sync] syncs them. They outlive any process at once.
func (r Root) Deferred() Root {
	r.late = &deferred{files: make(map[string][]string)}
	return r
}

// note keeps for the next sync that name of id was written; without a name, that
// its directory was made.
func (l *deferred) note(id string, name ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[id] = append(l.files[id], name...)
}

func (l *deferred) take() map[string][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	files := l.files
	l.files = make(map[string][]string)
	return files
}

// syncBatch bounds the directories that are open at once.
const syncBatch = 64

// Sync makes durable what was written through a handle of [Root.Deferred] before
// it was called. What was removed meanwhile needs nothing. What could not be opened
// is tried again by the next call; what could not be synced is not: the system has
// given it up. Both are in the error.
func (r Root) Sync() error {
	if r.late == nil {
		return nil
	}
	written := r.late.take()
	if len(written) == 0 {
		return nil
	}
	var errs []error
	batch := make([]*os.File, 0, 3*syncBatch)
	flush := func() {
		// All are begun before the first is waited for, so one commit of the file
		// system's journal serves the whole batch.
		for _, f := range batch {
			beginSync(f)
		}
		for _, f := range batch {
			errs = append(errs, f.Sync(), f.Close())
		}
		batch = batch[:0]
	}
	for id, names := range written {
		files, err := r.openWritten(id, names)
		if err != nil {
			r.late.note(id, names...) // it could not be opened now; the next time it may
			errs = append(errs, err)
		}
		batch = append(batch, files...)
		if len(batch) >= 2*syncBatch {
			flush()
		}
	}
	flush()
	if err := errors.Join(append(errs, r.dir.Sync())...); err != nil {
		return fmt.Errorf("sync run directories: %w", err)
	}
	return nil
}

// openWritten opens the files and their directory, in the order in which they are
// to be synced.
func (r Root) openWritten(id string, names []string) ([]*os.File, error) {
	d, err := r.Open(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []*os.File
	var errs []error
	for _, name := range names {
		f, err := d.OpenRead(name)
		switch {
		case err == nil:
			files = append(files, f)
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	return append(files, d.dir), errors.Join(errs...)
}
