//go:build unix

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/diskspace"
)

// condemnedPrefix begins the name of a directory whose removal is decided.
const condemnedPrefix = ".removed-"

// Root is the directory that holds the run directories. It is a handle: copies
// share one descriptor.
type Root struct {
	path string
	dir  *os.File
	// late is nil unless syncs are deferred.
	late *deferred
}

// Open opens the root, and makes it when it is missing.
func Open(path string) (Root, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Root{}, fmt.Errorf("open run directories: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return Root{}, fmt.Errorf("open run directories: %w", err)
	}
	dir, err := openDir(unix.AT_FDCWD, path)
	if err != nil {
		return Root{}, fmt.Errorf("open run directories %s: %w", path, err)
	}
	return Root{path: path, dir: dir}, nil
}

// Close releases the descriptor. Open [Dir]s stay usable.
func (r Root) Close() error { return r.dir.Close() }

// Path is the root's absolute path.
func (r Root) Path() string { return r.path }

// Create makes the run directory of a new subagent. It fails with an error that
// is [fs.ErrExist] when there is one.
func (r Root) Create(id string) (*Dir, error) {
	if !events.ValidID(id) {
		return nil, invalidID(id)
	}
	if err := unix.Mkdirat(r.fd(), id, 0o700); err != nil {
		return nil, fmt.Errorf("create run directory %s: %w", id, err)
	}
	d, err := r.Open(id)
	if err != nil {
		return nil, err
	}
	err = d.dir.Chmod(0o700) // that of mkdir is subject to the umask
	if r.late == nil {
		err = errors.Join(err, r.dir.Sync())
	} else {
		r.late.note(id)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create run directory %s: %w", id, err), d.Close())
	}
	return d, nil
}

// Open opens an existing run directory. It fails with an error that is
// [fs.ErrNotExist] when there is none.
func (r Root) Open(id string) (*Dir, error) {
	if !events.ValidID(id) {
		return nil, invalidID(id)
	}
	dir, err := openDir(r.fd(), id)
	if err != nil {
		return nil, fmt.Errorf("open run directory %s: %w", id, err)
	}
	return &Dir{id: id, path: filepath.Join(r.path, id), dir: dir, late: r.late}, nil
}

// List returns the ids that have a run directory, sorted.
func (r Root) List() ([]string, error) {
	return r.list(func(name string) (string, bool) { return name, events.ValidID(name) })
}

// Condemn decides that id's directory goes. It is durable when Condemn returns.
// No directory is no error.
func (r Root) Condemn(id string) error {
	if !events.ValidID(id) {
		return invalidID(id)
	}
	// An older condemned directory of the same id would block the rename.
	if err := r.Purge(id); err != nil {
		return err
	}
	err := unix.Renameat(r.fd(), id, r.fd(), condemnedPrefix+id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(err, r.dir.Sync()); err != nil {
		return fmt.Errorf("condemn run directory %s: %w", id, err)
	}
	return nil
}

// Reprieve takes Condemn back, as long as Purge was not called.
func (r Root) Reprieve(id string) error {
	if !events.ValidID(id) {
		return invalidID(id)
	}
	err := unix.Renameat(r.fd(), condemnedPrefix+id, r.fd(), id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(err, r.dir.Sync()); err != nil {
		return fmt.Errorf("reprieve run directory %s: %w", id, err)
	}
	return nil
}

// Condemned returns the ids whose removal is decided and not finished, sorted.
func (r Root) Condemned() ([]string, error) {
	return r.list(func(name string) (string, bool) {
		id, ok := strings.CutPrefix(name, condemnedPrefix)
		return id, ok && events.ValidID(id)
	})
}

// Purge deletes id's condemned directory. No directory is no error.
func (r Root) Purge(id string) error {
	if !events.ValidID(id) {
		return invalidID(id)
	}
	root, err := os.OpenRoot(r.path)
	if err != nil {
		return fmt.Errorf("remove run directory %s: %w", id, err)
	}
	err = root.RemoveAll(condemnedPrefix + id)
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("remove run directory %s: %w", id, err)
	}
	return nil
}

// Remove deletes id's directory.
func (r Root) Remove(id string) error {
	if err := r.Condemn(id); err != nil {
		return err
	}
	return r.Purge(id)
}

// Free returns how many bytes of the file system are free for us, and its size.
func (r Root) Free() (free, size uint64, err error) {
	if free, size, err = diskspace.Free(r.fd()); err != nil {
		return 0, 0, fmt.Errorf("ask for the free space of %s: %w", r.path, err)
	}
	return free, size, nil
}

func (r Root) fd() int { return int(r.dir.Fd()) }

// list reads the root through a descriptor of its own, because the read position
// of r.dir is shared.
func (r Root) list(keep func(name string) (string, bool)) ([]string, error) {
	dir, err := openDir(r.fd(), ".")
	if err != nil {
		return nil, fmt.Errorf("list run directories %s: %w", r.path, err)
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, fmt.Errorf("list run directories %s: %w", r.path, err)
	}
	ids := make([]string, 0, len(names))
	for _, name := range names {
		if id, ok := keep(name); ok {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	return ids, nil
}

func openDir(at int, name string) (*os.File, error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func invalidID(id string) error {
	return events.Errorf(events.CodeInvalidID, events.LayerGate, "run directory: %q is not an id", id)
}
