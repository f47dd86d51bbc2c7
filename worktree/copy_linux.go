package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// copied is what became of one file.
type copied struct {
	// to is the copy's status; mode 0 if the source was gone.
	to unix.Stat_t
	// from is the source's, before and after the copy the same.
	from unix.Stat_t
	// steady is false if the source changed meanwhile.
	steady bool
	// returns is whether a carriage return is in it, or not known to be in it.
	returns bool
}

// copier copies files from one tree to another: bytes, permissions, times and
// links. The target is a new tree of ours.
type copier struct {
	from, to *os.File
	umask    uint32
	buffers  sync.Pool
}

// smallFile is copied through memory; for larger ones the kernel is asked.
const smallFile = 1 << 20

func newCopier(from, to string) (*copier, error) {
	c := &copier{buffers: sync.Pool{New: func() any { b := make([]byte, smallFile+1); return &b }}}
	var err error
	if c.from, err = os.OpenFile(from, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
		return nil, err
	}
	if c.to, err = os.OpenFile(to, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
		return nil, errors.Join(err, c.from.Close())
	}
	return c, nil
}

func (c *copier) close() { c.from.Close(); c.to.Close() } // directories, nothing is written through them

// batch are files of one directory, by their places in a list.
type batch struct {
	dir   string
	files []int
}

// batches groups sorted paths by directory.
func batches(paths []string) []batch {
	at := make(map[string]int)
	var out []batch
	for i, p := range paths {
		dir, _ := split(p)
		n, ok := at[dir]
		if !ok {
			n = len(out)
			at[dir] = n
			out = append(out, batch{dir: dir})
		}
		out[n].files = append(out[n].files, i)
	}
	return out
}

// copy copies the paths and says what became of each.
func (c *copier) copy(ctx context.Context, paths []string, modes map[string]uint32) ([]copied, error) {
	out := make([]copied, len(paths))
	list := batches(paths)
	if err := c.makeDirs(list, modes); err != nil {
		return nil, err
	}
	err := parallel(ctx, len(list), func(i int) error { return c.batch(ctx, list[i], paths, out) })
	return out, err
}

// makeDirs makes the directories of batches, those above before those below.
func (c *copier) makeDirs(list []batch, modes map[string]uint32) error {
	dirs := make([]string, 0, len(list))
	seen := map[string]bool{".": true}
	for _, b := range list {
		for d := b.dir; !seen[d]; d, _ = split(d) {
			seen[d] = true
			dirs = append(dirs, d)
		}
	}
	slices.Sort(dirs)
	for _, d := range dirs {
		mode := uint32(0o755)
		if m, ok := modes[d]; ok {
			mode = m&0o777 | 0o700
		}
		if err := unix.Mkdirat(int(c.to.Fd()), d, mode); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("make %s: %w", d, err)
		}
	}
	return nil
}

// batch copies the files of one directory.
func (c *copier) batch(ctx context.Context, b batch, paths []string, out []copied) error {
	from, err := beneath(c.from, b.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", b.dir, err)
	}
	defer unix.Close(from)
	to, err := beneath(c.to, b.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("open %s of the copy: %w", b.dir, err)
	}
	defer unix.Close(to)
	for _, i := range b.files {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		_, name := split(paths[i])
		if err := c.one(from, to, name, &out[i]); err != nil {
			return fmt.Errorf("copy %s: %w", paths[i], err)
		}
	}
	return nil
}

// one copies a file or link.
func (c *copier) one(from, to int, name string, out *copied) error {
	in, err := openRetry(from, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return c.link(from, to, name, out)
	case absent(err), errors.Is(err, unix.ENXIO):
		return nil
	case err != nil:
		return err
	}
	f := os.NewFile(uintptr(in), name)
	defer f.Close()
	if err := unix.Fstat(in, &out.from); err != nil {
		return err
	}
	if out.from.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	perm := out.from.Mode & 0o777
	fd, err := openRetry(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, perm|0o200)
	if err != nil {
		return err
	}
	dst := os.NewFile(uintptr(fd), name)
	if err := c.content(f, dst, out); err != nil {
		return errors.Join(err, dst.Close())
	}
	err = c.finish(fd, perm, out)
	if err := errors.Join(err, dst.Close()); err != nil {
		return err
	}
	var after unix.Stat_t
	if err := unix.Fstat(in, &after); err != nil {
		return err
	}
	out.steady = after.Mtim == out.from.Mtim && after.Ctim == out.from.Ctim && after.Size == out.from.Size && out.to.Size == after.Size
	return nil
}

// content copies the bytes and looks for carriage returns.
func (c *copier) content(from, to *os.File, out *copied) error {
	if out.from.Size > smallFile {
		out.returns = true // not looked for
		if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil {
			return nil
		}
		_, err := io.Copy(to, from) // copy_file_range where it can
		return err
	}
	buffer := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buffer)
	for {
		n, err := from.Read(*buffer)
		if n > 0 {
			out.returns = out.returns || bytes.IndexByte((*buffer)[:n], '\r') >= 0
			if _, err := to.Write((*buffer)[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF || n == 0 && err == nil {
			return nil
		}
		if err != nil {
			return err
		}
		if n < len(*buffer) && int64(n) == out.from.Size {
			return nil // it would only say that there is no more
		}
	}
}

// finish sets permissions and times, and looks at the result.
func (c *copier) finish(fd int, perm uint32, out *copied) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, out.from.Mtim}
	if err := unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH); err != nil {
		if err = utimens(fd, times); err != nil {
			return err
		}
	}
	if err := unix.Fstat(fd, &out.to); err != nil {
		return err
	}
	if out.to.Mode&0o777 == perm {
		return nil
	}
	if err := unix.Fchmod(fd, perm); err != nil {
		return err
	}
	return unix.Fstat(fd, &out.to)
}

// utimens sets the times of an open file where the kernel has no AT_EMPTY_PATH
// for it (before 5.8).
func utimens(fd int, times []unix.Timespec) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), times, 0)
}

// link copies a symbolic link as it is.
func (c *copier) link(from, to int, name string, out *copied) error {
	if err := unix.Fstatat(from, name, &out.from, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if absent(err) {
			return nil
		}
		return err
	}
	buf := make([]byte, unix.PathMax+1)
	n, err := unix.Readlinkat(from, name, buf)
	if err != nil {
		if errors.Is(err, unix.EINVAL) || absent(err) {
			return nil // it is no link any more
		}
		return err
	}
	if err := unix.Symlinkat(string(buf[:n]), to, name); err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, out.from.Mtim}
	if err := unix.UtimesNanoAt(to, name, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	var after unix.Stat_t
	if err := unix.Fstatat(from, name, &after, unix.AT_SYMLINK_NOFOLLOW); err != nil && !absent(err) {
		return err
	}
	out.steady = after.Ctim == out.from.Ctim && after.Ino == out.from.Ino
	return unix.Fstatat(to, name, &out.to, unix.AT_SYMLINK_NOFOLLOW)
}

func openRetry(at int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags|unix.O_CLOEXEC, perm)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// removeTree deletes a directory of ours, whatever modes its subagent gave what is
// in it. It follows no link and leaves its parent directory name by name.
func removeTree(parent, name string) error {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	if err = root.RemoveAll(name); err == nil {
		return nil
	}
	if err := openUp(filepath.Join(parent, name)); err != nil {
		return err
	}
	return root.RemoveAll(name)
}

// openUp lets us delete what is in directories that cannot be written.
func openUp(path string) error {
	dir, err := os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	level := []string{"."}
	for deadline := time.Now().Add(time.Minute); len(level) > 0 && time.Now().Before(deadline); {
		var next []string
		for _, d := range level {
			fd, err := beneath(dir, d, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
			if err != nil {
				continue
			}
			self := fmt.Sprintf("/proc/self/fd/%d", fd)
			err = os.Chmod(self, 0o700)
			entries, listErr := os.ReadDir(self + "/.")
			unix.Close(fd)
			if err := errors.Join(err, listErr); err != nil {
				return fmt.Errorf("open %s for deletion: %w", strings.TrimPrefix(d, "./"), err)
			}
			for _, e := range entries {
				if e.IsDir() {
					next = append(next, join(d, e.Name()))
				}
			}
		}
		level = next
	}
	return nil
}
