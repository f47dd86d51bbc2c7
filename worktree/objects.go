package worktree

import (
	"context"
	"errors"
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

// updateIndex has git take up what became of the paths.
func updateIndex(ctx context.Context, g Git, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	in := strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	if err := g.Run(ctx, Call{Stdin: in}, "update-index", "--add", "--remove", "--replace", "-z", "--stdin"); err != nil {
		return err
	}
	return nil
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
