package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Claimed is a directory that belongs to this process. The claim is a lock that
// the kernel lifts with the end of the process, however that comes.
type Claimed struct {
	path string
	lock *os.File
}

// Claim makes a directory in root with a name that begins with prefix, and removes
// those of the prefix whose owners are gone.
func Claim(root, prefix string) (*Claimed, error) {
	// Between the making of a directory and its lock it looks like one left behind.
	lock, err := lockDir(root, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	stale, staleErr := claimStale(root, prefix)
	c, err := claimNew(root, prefix)
	lock.Close() // which unlocks it
	for _, s := range stale {
		staleErr = errors.Join(staleErr, s.Remove())
	}
	if err == nil && staleErr != nil {
		return c, fmt.Errorf("remove what earlier commands left: %w", staleErr)
	}
	return c, err
}

func claimNew(root, prefix string) (*Claimed, error) {
	path, err := os.MkdirTemp(root, prefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &Claimed{path, lock}, nil
}

// claimStale claims the directories that nobody has claimed.
func claimStale(root, prefix string) ([]*Claimed, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var out []*Claimed
	var errs []error
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		if !strings.HasPrefix(e.Name(), prefix) || !Own(path) {
			continue
		}
		switch lock, err := lockDir(path, syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			out = append(out, &Claimed{path, lock})
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, os.ErrNotExist):
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

// lockDir opens and locks a directory. No link is followed.
func lockDir(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// Path is the directory.
func (c *Claimed) Path() string { return c.path }

// Remove removes the directory with all that is in it, and gives up the claim.
func (c *Claimed) Remove() error {
	return errors.Join(os.RemoveAll(c.path), c.lock.Close())
}
