package worktree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// place is the user's repository as found from a directory in it. Git is not
// asked: it would follow pointers that a hostile project wrote.
type place struct {
	// top is the working tree, gitDir its git directory, commonDir the one it shares.
	top, gitDir, commonDir string
	// subdirectory is the directory relative to top, empty for top itself.
	subdirectory string
}

func refusedAs(reason, format string, args ...any) *events.Error {
	return events.Errorf(events.CodeRepositoryRefused, events.LayerGate, "worktree: "+format, args...).WithDetail("reason", reason)
}

// Check refuses a directory of which no tree can be made, as far as that can be
// seen at once. What needs a longer look is refused by [Root.Create].
func Check(dir string) *events.Error {
	_, err := locate(dir)
	return err
}

var errSubmodule = errors.New("it is a submodule")

// locate finds the repository whose working tree holds dir, which is canonical.
func locate(dir string) (place, *events.Error) {
	for d := dir; ; d = filepath.Dir(d) {
		dot := filepath.Join(d, ".git")
		st, err := os.Lstat(dot)
		switch {
		case err == nil:
			p, e := locateAt(d, dot, st)
			if e != nil {
				return place{}, e
			}
			if rel, err := filepath.Rel(d, dir); err == nil && rel != "." {
				p.subdirectory = rel
			}
			return p, nil
		case !errors.Is(err, fs.ErrNotExist):
			return place{}, events.Errorf(events.CodeNotRepository, events.LayerWorkspace, "worktree: look for a repository: %w", err)
		}
		if isGitDir(d) == nil {
			return place{}, refusedAs("bare", "%s is a bare repository", d).
				WithRemedy("name a directory in a working tree of it (git worktree add), or use --isolation none")
		}
		if d == filepath.Dir(d) {
			return place{}, events.Errorf(events.CodeNotRepository, events.LayerGate, "worktree: %s is in no git repository", dir).
				WithRemedy("run git init there, or use --isolation none")
		}
	}
}

func locateAt(top, dot string, st fs.FileInfo) (place, *events.Error) {
	p := place{top: top}
	var err error
	switch {
	case st.Mode().IsRegular():
		p.gitDir, p.commonDir, err = followPointer(dot)
	case st.IsDir() || st.Mode()&fs.ModeSymlink != 0:
		if p.gitDir, err = filepath.EvalSymlinks(dot); err == nil {
			p.commonDir = p.gitDir
			err = isGitDir(p.gitDir)
		}
	default:
		err = fmt.Errorf("%s is neither a directory nor a file", dot)
	}
	if err == nil {
		err = ownGitDir(p.commonDir)
	}
	if errors.Is(err, errSubmodule) {
		return p, refusedAs("submodules", "%s is a submodule", top).
			WithRemedy("use --isolation none, or a clone of its own")
	}
	if err != nil {
		return p, refusedAs("forged", "%s is no repository of this working tree: %w", dot, err).
			WithRemedy("git -C %s rev-parse tells what git makes of it; git worktree repair mends moved ones", top)
	}
	return p, nil
}

// isGitDir checks that a directory is a git directory in itself: none of its
// parts leads elsewhere.
func isGitDir(dir string) error {
	for _, name := range []string{"objects", "refs"} {
		st, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("it has no %s: %w", name, err)
		}
		if !st.IsDir() {
			return fmt.Errorf("its %s is no directory", name)
		}
	}
	st, err := os.Lstat(filepath.Join(dir, "HEAD"))
	if err != nil {
		return fmt.Errorf("it has no HEAD: %w", err)
	}
	if !st.Mode().IsRegular() && st.Mode()&fs.ModeSymlink == 0 {
		return errors.New("its HEAD is no file")
	}
	return nil
}

// ownGitDir refuses the git directory of another user, as git does: its
// configuration is theirs.
func ownGitDir(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return err
	}
	if me := os.Geteuid(); me != 0 && int(st.Uid) != me {
		return fmt.Errorf("it belongs to user %d", st.Uid)
	}
	return nil
}

// followPointer follows a .git file to its git directory, and back: that
// directory has to be of this working tree.
func followPointer(dot string) (gitDir, commonDir string, err error) {
	dir, err := readPointer(dot, "gitdir: ")
	if err != nil {
		return "", "", err
	}
	if _, err := os.Lstat(filepath.Join(dir, "commondir")); errors.Is(err, fs.ErrNotExist) {
		return followSeparate(dot, dir)
	}
	common, err := readPointer(filepath.Join(dir, "commondir"), "")
	if err != nil {
		return "", "", err
	}
	back, err := readLine(filepath.Join(dir, "gitdir"))
	if err != nil {
		return "", "", err
	}
	if !filepath.IsAbs(back) { // worktree.useRelativePaths
		back = filepath.Join(dir, back)
	}
	if filepath.Clean(back) != dot || filepath.Dir(dir) != filepath.Join(common, "worktrees") {
		return "", "", fmt.Errorf("%s is of the working tree %s", dir, filepath.Dir(back))
	}
	return dir, common, isGitDir(common)
}

// followSeparate takes the git directory of git init --separate-git-dir, which has
// no way back: it must not be that of another working tree.
func followSeparate(dot, dir string) (gitDir, commonDir string, err error) {
	if err := isGitDir(dir); err != nil {
		return "", "", fmt.Errorf("%s: %w", dir, err)
	}
	if slices.Contains(strings.Split(dir, "/"), "modules") {
		return "", "", errSubmodule
	}
	if filepath.Base(dir) == ".git" {
		return "", "", fmt.Errorf("%s is of the working tree %s", dir, filepath.Dir(dir))
	}
	return dir, dir, nil
}

// readLine reads a one-line file, never through a link.
func readLine(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 8192))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	line := strings.TrimSuffix(string(b), "\n")
	if line == "" || strings.ContainsAny(line, "\n\x00") {
		return "", fmt.Errorf("%s does not hold one line", path)
	}
	return line, nil
}

// readPointer reads a one-line file that names a directory and returns it canonical.
func readPointer(path, prefix string) (string, error) {
	line, err := readLine(path)
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(line, prefix)
	if !ok || name == "" {
		return "", fmt.Errorf("%s names no directory", path)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(path), name)
	}
	resolved, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", fmt.Errorf("follow %s: %w", path, err)
	}
	return resolved, nil
}
