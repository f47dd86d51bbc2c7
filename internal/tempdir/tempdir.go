// Package tempdir keeps the TMPDIRs of all subagents of one user in one
// directory, so that a sandbox can cover all but one of them.
package tempdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Root returns the directory of this user's TMPDIRs, which may not exist yet. No
// component of it is a symbolic link.
func Root() (string, error) {
	temp, err := filepath.EvalSymlinks("/tmp")
	if err != nil {
		return "", fmt.Errorf("find the directory for temporary files: %w", err)
	}
	return filepath.Join(temp, fmt.Sprintf("hayward-%d", os.Geteuid())), nil
}

// MakeRoot makes a root. It lies where others can make one of that name before:
// it must be this user's, and is closed to everybody else.
func MakeRoot(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if !Own(dir) {
		return fmt.Errorf("%s is not a directory of this user; remove it", dir)
	}
	return os.Chmod(dir, 0o700)
}

// Own reports whether path is a directory, no link, of this user.
func Own(path string) bool {
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}
