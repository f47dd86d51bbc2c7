package worktree

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/filetx"
)

// unsaved says what of an ended subagent's directory would be lost with it:
// every file's bytes are compared with the snapshot of the end and then with the
// user's file of the same path, and every commit that the directory names must be
// reachable in the user's repository. Nothing that git believes of the files is
// relied on. The result is empty when nothing would be lost.
func (r Root) unsaved(ctx context.Context, rec Record) ([]string, *events.Error) {
	return r.unsavedExcept(ctx, rec, nil)
}

// unsavedExcept is unsaved for the files that pick leaves.
func (r Root) unsavedExcept(ctx context.Context, rec Record, pick func([]string) ([]string, *events.Error)) ([]string, *events.Error) {
	tree, err := filetx.Open(r.Tree(rec), rec.ObjectFormat)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, workFailed(rec.ID, "look at its directory", err)
	}
	defer tree.Close()
	if rec.Problem != nil {
		return []string{"its end was not saved completely"}, nil
	}
	refs, failure := ListRefs(ctx, rec.CommonDir, rec.ID)
	if failure != nil {
		return nil, failure
	}
	asBegun(rec, refs)
	end := refs["subagents/"+RefTree]
	if end == "" {
		return []string{"its end is not in the repository"}, nil
	}
	var why []string
	for _, kept := range rec.Kept { // what of its git directory could not be saved
		if strings.HasPrefix(kept, "its git directory") || strings.HasPrefix(kept, "what is staged") {
			why = append(why, kept)
		}
	}
	files, failure := r.unsavedFiles(ctx, rec, tree, end)
	if failure != nil {
		return nil, failure
	}
	if pick != nil && len(files) > 0 {
		if files, failure = pick(files); failure != nil {
			return nil, failure
		}
	}
	if n := len(files); n > 0 {
		why = append(why, fmt.Sprintf("%s that only its directory holds, such as %s", counted(n, "file"), shownPath(files[0])))
	}
	commits, failure := unsavedCommits(ctx, rec, tree)
	if failure != nil {
		return nil, failure
	}
	if n := len(commits); n > 0 {
		why = append(why, fmt.Sprintf("%s that only its directory holds, such as %s", counted(n, "commit"), commits[0]))
	}
	return why, nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// unsavedFiles lists what the snapshot and the user's tree do not hold, sorted.
func (r Root) unsavedFiles(ctx context.Context, rec Record, tree *filetx.Tree, end string) ([]string, *events.Error) {
	saved, failure := listTree(ctx, userGit(rec.CommonDir, rec.ID), end)
	if failure != nil {
		return nil, failure
	}
	users, err := filetx.Open(rec.Repository, rec.ObjectFormat)
	if err == nil {
		defer users.Close()
	}
	var lost []string
	err = tree.Walk("", func(name string, s filetx.State) error {
		switch {
		case name == ".git":
			return filetx.SkipDir
		case s.Kind == filetx.Directory, s.Kind == filetx.Special: // hold no bytes
			return nil
		}
		s, err := tree.State(name)
		if err != nil {
			return err
		}
		if s.Same(saved[name].state()) {
			return nil
		}
		if users != nil && filetx.CheckPath(name) == nil {
			if u, err := users.State(name); err == nil && u.Same(s) {
				return nil
			}
		}
		lost = append(lost, name)
		return nil
	})
	if err != nil {
		return nil, workFailed(rec.ID, "look at its directory", err)
	}
	slices.Sort(lost)
	return lost, nil
}

// listTree lists the files of a commit's tree.
func listTree(ctx context.Context, g Git, commit string) (map[string]treeEntry, *events.Error) {
	out, err := g.Output(ctx, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	all := make(map[string]treeEntry)
	for _, line := range fields(out) {
		meta, path, _ := strings.Cut(line, "\t")
		if f := strings.Fields(meta); len(f) == 3 {
			all[path] = treeEntry{f[0], f[2]}
		}
	}
	return all, nil
}

// unsavedCommits lists the commits that the directory's own git directory names,
// in refs, HEAD and the logs of both, and that no ref of the user's repository
// reaches. That git directory is hostile: its files are read, git never is run
// on it.
func unsavedCommits(ctx context.Context, rec Record, tree *filetx.Tree) ([]string, *events.Error) {
	named := make(map[string]bool)
	err := namedObjects(tree, rec.ObjectFormat, named)
	if err != nil {
		return nil, workFailed(rec.ID, "read what its git directory names", err)
	}
	if len(named) == 0 {
		return nil, nil
	}
	var in strings.Builder
	for oid := range named {
		in.WriteString(oid + "\n")
	}
	g := userGit(rec.CommonDir, rec.ID)
	out, failure := g.OutputOf(ctx, Call{Stdin: strings.NewReader(in.String())}, "cat-file", "--batch-check=%(objectname) %(objecttype)")
	if failure != nil {
		return nil, failure
	}
	var lost, here []string
	for line := range strings.Lines(string(out)) {
		oid, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "missing" {
			lost = append(lost, oid)
		} else {
			here = append(here, oid)
		}
	}
	if len(here) > 0 {
		out, failure = g.OutputOf(ctx, Call{Stdin: strings.NewReader(strings.Join(here, "\n") + "\n")}, "rev-list", "--max-count=1000", "--stdin", "--not", "--all")
		if failure != nil {
			return nil, failure
		}
		lost = append(lost, strings.Fields(string(out))...)
	}
	slices.Sort(lost)
	return lost, nil
}

// namedObjects collects the object ids in HEAD, refs and logs of a git directory.
func namedObjects(tree *filetx.Tree, format string, named map[string]bool) error {
	read := func(name string) error {
		var b bytes.Buffer
		if _, err := tree.Copy(name, &b); err != nil {
			return err
		}
		lines := bufio.NewScanner(&b)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			// A ref is an id; a packed one an id and a name, or ^ and an id; a log has
			// the id before and the id after.
			for i, word := range strings.Fields(lines.Text()) {
				word = strings.TrimPrefix(word, "^")
				if i < 2 && validOID(word, format) && strings.Trim(word, "0") != "" {
					named[word] = true
				}
			}
		}
		return lines.Err()
	}
	for _, name := range []string{"HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "packed-refs"} {
		s, err := tree.State(".git/" + name)
		if err == nil && s.Kind.Regular() {
			err = read(".git/" + name)
		}
		if err != nil {
			return err
		}
	}
	for _, dir := range []string{".git/refs", ".git/logs"} {
		s, err := tree.State(dir)
		if err == nil && s.Kind == filetx.Directory {
			err = tree.Walk(dir, func(name string, s filetx.State) error {
				if s.Kind.Regular() {
					return read(name)
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// directorySize is how many bytes of disk a tree and what belongs to it take.
func (r Root) directorySize(id string) int64 {
	var total int64
	// What cannot be looked at is not counted: the number is for people.
	_ = filepath.WalkDir(r.Dir(id), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			total += diskBytes(info)
		}
		return nil
	})
	return total
}

// present reports whether the working tree's directory is there.
func (r Root) present(rec Record) bool {
	info, err := os.Lstat(r.Tree(rec))
	return err == nil && info.IsDir()
}
