package filetx

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Tree is an open directory.
type Tree struct {
	root *os.File
	path string
	sum  func() hash.Hash

	// hit is called between steps; an error of it ends a transaction as a crash
	// would. Tests set it.
	hit func(point string) error
	// noExchange pretends a file system that cannot exchange names.
	noExchange bool
}

// Open opens a directory by its absolute path. objectFormat is git's: sha1 or
// sha256.
func Open(dir, objectFormat string) (*Tree, error) {
	sum := sha1.New
	switch objectFormat {
	case "sha1":
	case "sha256":
		sum = sha256.New
	default:
		return nil, fmt.Errorf("open %s: object format %q is unknown", dir, objectFormat)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Tree{root: os.NewFile(uintptr(fd), dir), path: dir, sum: sum}, nil
}

// Close releases the descriptor.
func (t *Tree) Close() error { return t.root.Close() }

// openTries bounds the repetitions when the kernel saw a rename race.
const openTries = 100

// open opens a path beneath the directory; no component of it may be a link.
func (t *Tree) open(name string, flags uint64) (int, error) {
	if name == "" {
		name = "."
	}
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(int(t.root.Fd()), name, &how)
		if (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)) && try < openTries {
			continue
		}
		if err != nil {
			return -1, &os.PathError{Op: "open", Path: path.Join(t.path, name), Err: err}
		}
		return fd, nil
	}
}

// at calls f with a descriptor of the directory that holds name and with the
// name in it.
func (t *Tree) at(name string, f func(dir int, base string) error) error {
	parent, base := split(name)
	dir, err := t.open(parent, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dir) // O_PATH: nothing can be lost
	if err := f(dir, base); err != nil {
		return &os.PathError{Op: "change", Path: path.Join(t.path, name), Err: err}
	}
	return nil
}

func split(name string) (parent, base string) {
	i := strings.LastIndexByte(name, '/')
	return name[:max(i, 0)], name[i+1:]
}

// State says what a path holds, content included.
func (t *Tree) State(name string) (State, error) {
	s, err := t.stat(name)
	if err != nil {
		return s, err
	}
	switch {
	case s.Kind.Regular():
		s.OID, err = t.hashFile(name, io.Discard)
	case s.Kind == Symlink:
		var target string
		if target, err = t.readlink(name); err == nil {
			s.OID = t.hash([]byte(target))
		}
	}
	return s, err
}

// Copy writes a regular file's bytes and returns their object id.
func (t *Tree) Copy(name string, w io.Writer) (oid string, err error) { return t.hashFile(name, w) }

// stat says what a path holds, content left out.
func (t *Tree) stat(name string) (State, error) {
	var st unix.Stat_t
	err := t.at(name, func(dir int, base string) error {
		return unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return t.missing(name)
	case err != nil:
		return State{}, err
	}
	return stateOf(&st), nil
}

func stateOf(st *unix.Stat_t) State {
	s := State{Kind: Special, perm: st.Mode & 0o7777, uid: st.Uid, gid: st.Gid, dev: uint64(st.Dev), ino: st.Ino}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.Kind = File
		if st.Mode&unix.S_IXUSR != 0 {
			s.Kind = Executable
		}
	case unix.S_IFLNK:
		s.Kind = Symlink
	case unix.S_IFDIR:
		s.Kind = Directory
	}
	return s
}

// missing tells a path that can be made from one whose ancestor is in the way.
func (t *Tree) missing(name string) (State, error) {
	parent, _ := split(name)
	if parent == "" {
		return State{}, nil
	}
	s, err := t.stat(parent)
	switch {
	case err != nil:
		return State{}, err
	case s.Kind == Absent, s.Kind == Directory:
		return State{}, nil
	case s.Kind == Blocked:
		return s, nil
	}
	return State{Kind: Blocked, At: parent, AtKind: s.Kind}, nil
}

func (t *Tree) readlink(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	var n int
	err := t.at(name, func(dir int, base string) (err error) {
		n, err = unix.Readlinkat(dir, base, buf)
		return err
	})
	return string(buf[:max(n, 0)]), err
}

// hashFile copies a regular file to w and returns the object id of its bytes.
func (t *Tree) hashFile(name string, w io.Writer) (string, error) {
	fd, err := t.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), path.Join(t.path, name))
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read %s: %w", f.Name(), ErrChanged)
	}
	sum := t.sum()
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	n, err := io.Copy(io.MultiWriter(sum, w), f)
	if err == nil && n != info.Size() {
		err = fmt.Errorf("read %s: %w", f.Name(), ErrChanged)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// hash is the object id of bytes in memory.
func (t *Tree) hash(content []byte) string {
	sum := t.sum()
	fmt.Fprintf(sum, "blob %d\x00", len(content))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil))
}

// Walk calls f for everything below a directory, ancestors before what is in
// them. What is no directory is not entered.
func (t *Tree) Walk(dir string, f func(name string, s State) error) error {
	fd, err := t.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(fd), path.Join(t.path, dir))
	names, err := d.Readdirnames(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, base := range names {
		name := base
		if dir != "" {
			name = dir + "/" + base
		}
		s, err := t.stat(name)
		if err == nil && s.Kind != Absent {
			err = f(name, s)
		}
		switch {
		case errors.Is(err, SkipDir):
			continue
		case err != nil:
			return err
		}
		if s.Kind == Directory {
			if err := t.Walk(name, f); err != nil {
				return err
			}
		}
	}
	return nil
}
