package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func unixTime(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) + " +0000" }

// commitTree writes a commit of ours; parent may be empty.
func commitTree(ctx context.Context, g Git, tree, message string, when time.Time, parent string) (string, error) {
	args := []string{"commit-tree", tree}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	date := unixTime(when)
	out, err := g.OutputOf(ctx, Call{
		Stdin: strings.NewReader(message),
		Env:   []string{"GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date},
	}, args...)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// updateIndex has git take up what became of the paths. What lies behind a link now
// is gone from its place: git would refuse to look there.
func updateIndex(ctx context.Context, g Git, paths []string) error {
	var gone, look []string
	links := make(map[string]bool)
	for _, path := range paths {
		if behindLink(g.WorkTree, path, links) {
			gone = append(gone, path)
		} else {
			look = append(look, path)
		}
	}
	for _, step := range []struct {
		paths []string
		flags []string
	}{{gone, []string{"--force-remove"}}, {look, []string{"--add", "--remove", "--replace"}}} {
		if len(step.paths) == 0 {
			continue
		}
		in := strings.NewReader(strings.Join(step.paths, "\x00") + "\x00")
		args := append(append([]string{"update-index"}, step.flags...), "-z", "--stdin")
		if err := g.Run(ctx, Call{Stdin: in}, args...); err != nil {
			return err
		}
	}
	return nil
}

// behindLink reports whether a directory on the way to path is a link. known holds
// what was found out already.
func behindLink(top, path string, known map[string]bool) bool {
	dir := filepath.Dir(path)
	if dir == "." {
		return false
	}
	behind, ok := known[dir]
	if !ok {
		behind = behindLink(top, dir, known)
		if !behind {
			st, err := os.Lstat(filepath.Join(top, dir))
			behind = err == nil && st.Mode().Type() == fs.ModeSymlink
		}
		known[dir] = behind
	}
	return behind
}

// present checks that every object of a tree is there that the commit does not
// have; commit may be empty.
func present(ctx context.Context, g Git, commit, tree string) error {
	if commit == "" {
		if err := g.Run(ctx, Call{}, "rev-list", "--objects", "--quiet", tree); err != nil {
			return err
		}
		return nil
	}
	out, err := g.Output(ctx, "diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--no-abbrev", commit, tree)
	if err != nil {
		return err
	}
	return presentAll(ctx, g, newObjects(out))
}

// newObjects lists the objects of the second tree in what diff-tree -z --raw writes,
// one id a line.
func newObjects(raw []byte) string {
	var ids strings.Builder
	for _, f := range fields(raw) {
		// ":oldmode newmode oldid newid status", then the path
		if p := strings.Fields(f); len(p) == 5 && strings.HasPrefix(f, ":") && p[1] != "000000" {
			ids.WriteString(p[3] + "\n")
		}
	}
	return ids.String()
}

// presentAll checks that the objects, one id a line, are there.
func presentAll(ctx context.Context, g Git, ids string) error {
	if ids == "" {
		return nil
	}
	out, err := g.OutputOf(ctx, Call{Stdin: strings.NewReader(ids)}, "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return err
	}
	if strings.Contains(string(out), "missing") {
		return errors.New("objects vanished while they were written; a git gc --prune=now may have run: try again")
	}
	return nil
}
