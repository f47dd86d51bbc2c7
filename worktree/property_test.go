package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// change is one thing that somebody does to a working tree.
type change struct{ kind, path, content string }

// changes draws what somebody does, over few names, so that they meet: files become
// directories and links, are staged, taken back, deleted.
var changes = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) change {
	return change{
		kind: rapid.SampledFrom([]string{"write", "write", "write", "delete", "exec", "private", "link", "stage", "stage", "unstage", "touch"}).Draw(t, "kind"),
		path: rapid.SampledFrom([]string{
			"a", "b", "d/a", "d/b", "d/e/a", "d/e/ü \"x\"", "a/x", "f.log", "-n", ":m", "crlf.txt", "d/.gitignore",
		}).Draw(t, "path"),
		content: rapid.SampledFrom([]string{"", "1\n", "2\n", "1\r\n2\r\n", "\x00\xff\xfe", "*.tmp\n", "same size 1", "same size 2"}).Draw(t, "content"),
	}
}), 1, 25)

// apply does it, as far as the tree lets it.
func (u *user) apply(list []change) {
	for _, c := range list {
		path := filepath.Join(u.dir, c.path)
		switch c.kind {
		case "write", "link":
			if st, err := os.Lstat(path); err == nil && st.IsDir() {
				require.NoError(u.t, os.RemoveAll(path))
			}
			if parent := filepath.Dir(path); parent != u.dir {
				if st, err := os.Lstat(parent); err == nil && !st.IsDir() {
					require.NoError(u.t, os.Remove(parent))
				}
			}
			require.NoError(u.t, os.MkdirAll(filepath.Dir(path), 0o755))
			if c.kind == "link" {
				_ = os.Remove(path) // it may not be there
				require.NoError(u.t, os.Symlink("to "+c.path, path))
			} else if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSymlink != 0 {
				require.NoError(u.t, os.Remove(path))
				u.write(c.path, c.content)
			} else {
				u.write(c.path, c.content)
			}
		case "delete":
			require.NoError(u.t, os.RemoveAll(path))
		case "exec", "private":
			if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() {
				mode := os.FileMode(0o755)
				if c.kind == "private" {
					mode = 0o640
				}
				require.NoError(u.t, os.Chmod(path, mode))
			}
		case "stage":
			_, _ = u.try("add", "-A", "--", "./"+c.path) // nothing of the name is no fault
		case "unstage":
			_, _ = u.try("rm", "-q", "--cached", "-r", "--", "./"+c.path)
		case "touch":
			_, _ = u.try("update-index", "-q", "--refresh")
		}
	}
}

// withoutIgnored leaves out what git ignores in a repository.
func (u *user) withoutIgnored(all map[string]string) map[string]string {
	for _, p := range fields([]byte(u.git("ls-files", "-z", "--others", "--ignored", "--exclude-standard"))) {
		delete(all, p)
	}
	return all
}

// TestAnyState: whatever the user's state, the tree begins with it byte by byte;
// whatever was done inside, the refs hold it byte by byte; the user's own is as it
// was; and where nothing was done, nothing stays.
func TestAnyState(t *testing.T) {
	attributes := []string{"", "", "* text=auto\n", "*.txt text eol=crlf\n*.x ident\n"}
	for seed := range 8 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			u := newUser(t)
			u.write(".gitignore", "*.log\n")
			if a := attributes[seed%len(attributes)]; a != "" {
				u.write(".gitattributes", a)
			}
			u.apply(changes.Example(3 * seed))
			u.commit("one")
			before := changes.Example(3*seed + 1)
			u.apply(before)
			mine := u.withoutIgnored(listing(t, u.dir))
			state, status := gitState(t, u.dir), ""
			root := newRoot(t)
			tree := create(t, root, u.dir)
			in := inside(t, tree)
			require.Equal(t, mine, listing(t, tree.Path), "%q", before)
			require.Equal(t, state, gitState(t, u.dir))
			require.Equal(t, mine, restored(t, u, BaseRef(tree.ID, RefTree)))
			status = u.git("status", "--porcelain", "-z")
			require.Equal(t, status, in.git("status", "--porcelain", "-z"), "%q", before)

			if seed%5 != 4 {
				after := changes.Example(3*seed + 2)
				in.apply(after)
				want, staged := in.withoutIgnored(listing(t, tree.Path)), in.git("write-tree")
				out := end(t, root, tree)
				require.Nil(t, out.Worktree.Problem, "%q", after)
				if out.Changes.Files > 0 {
					require.Equal(t, want, restored(t, u, EndRef(tree.ID, RefTree)), "%q", after)
					require.Equal(t, staged, u.git("rev-parse", EndRef(tree.ID, RefIndex)+"^{tree}"))
				} else {
					require.Equal(t, mine, want, "%q", after)
				}
			} else {
				out := end(t, root, tree)
				require.Nil(t, out.Worktree.Problem)
				require.False(t, out.Worktree.Kept, "%v", out.Worktree.KeptFor)
			}
			require.Equal(t, mine, u.withoutIgnored(listing(t, u.dir)))
			u.git("fsck", "--strict")
		})
	}
}
