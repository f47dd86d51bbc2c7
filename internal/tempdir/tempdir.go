// Package tempdir keeps the TMPDIRs of all subagents of one user in one
// directory, so that a sandbox can cover all but one of them.
package tempdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// MakeRoot makes a root, closed to everybody else, and returns it. It lies where
// others can make one of that name before: where dir is anything but a directory
// of this user, another one is made beside it that nobody can foresee.
func MakeRoot(dir string) (string, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if !Own(dir) {
		return os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+"-")
	}
	return dir, os.Chmod(dir, 0o700)
}

// Roots are the directories that [MakeRoot] may have returned for dir: dir itself
// and those beside it that are this user's.
func Roots(dir string) []string {
	out := []string{dir}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return out
	}
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(dir), e.Name())
		if strings.HasPrefix(e.Name(), filepath.Base(dir)+"-") && Own(path) {
			out = append(out, path)
		}
	}
	return out
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
