package filetx

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever somebody does to a path between the look and the move, his bytes stay
// and everything else is as before.
func TestChangedMeanwhile(t *testing.T) {
	edits := map[string]func(p string) error{
		"edited":     func(p string) error { return os.WriteFile(p, []byte("mine"), 0o644) },
		"saved anew": func(p string) error { return errors.Join(os.Remove(p), os.WriteFile(p, []byte("mine"), 0o644)) },
		"removed":    os.Remove,
		"linked":     func(p string) error { return errors.Join(os.Remove(p), os.Symlink("mine", p)) },
		"directory":  func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o755)) },
		"executable": func(p string) error { return os.Chmod(p, 0o755) },
	}
	for about, edit := range edits {
		for _, name := range []string{"replaced", "removed", "deep/er/replaced"} {
			for _, exchange := range []bool{true, false} {
				tree, dir, journal := opened(t, before)
				tree.noExchange = !exchange
				tree.hit = func(point string) error {
					if point == "staged" {
						return edit(filepath.Join(dir, name))
					}
					return nil
				}
				want := maps.Clone(before)
				reference := t.TempDir()
				want.write(t, reference)
				require.NoError(t, edit(filepath.Join(reference, name)))
				err := tree.Apply(t.Context(), journal, changes(t, tree, wanted), wanted.fill)
				require.ErrorIs(t, err, ErrChanged, "%s %s", about, name)
				require.Equal(t, read(t, reference), read(t, dir), "%s %s", about, name)
				require.NoFileExists(t, journal)
			}
		}
	}
	for _, name := range []string{"new", "new link", "new directory"} {
		tree, dir, journal := opened(t, before)
		tree.hit = func(point string) error {
			if point == "staged" {
				return os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o644)
			}
			return nil
		}
		require.ErrorIs(t, tree.Apply(t.Context(), journal, changes(t, tree, wanted), wanted.fill), ErrChanged, name)
		want := maps.Clone(before)
		want[name] = "mine"
		require.Equal(t, want, read(t, dir))
	}
}

// What is written after a crash is nobody's to take away.
func TestChangedAfterACrash(t *testing.T) {
	tree, dir, journal := opened(t, before)
	tree.hit = crashAt("moved")
	require.ErrorIs(t, tree.Apply(t.Context(), journal, changes(t, tree, wanted), wanted.fill), errCrash)
	for _, name := range []string{"replaced", "removed", "new", "directory becomes file"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o644))
	}
	r, err := Recover(journal)
	require.NoError(t, err)
	left := map[string]string{}
	for _, l := range r.Left {
		left[l.Path] = l.Kept
	}
	require.ElementsMatch(t, []string{"replaced", "removed", "new", "directory becomes file", "directory becomes file/a", "directory becomes file/b/c"},
		slices.Collect(maps.Keys(left)))
	got := read(t, dir)
	require.Equal(t, "old", got[left["replaced"]], "what it held before is kept")
	require.Equal(t, "gone", got[left["removed"]])
	require.Equal(t, "a", got[left["directory becomes file/a"]])
	for _, name := range []string{"replaced", "removed", "new", "directory becomes file"} {
		require.Equal(t, "mine", got[name])
	}
	require.Equal(t, before["link"], got["link"], "the rest is as before")
	require.NoFileExists(t, journal)
}

func TestLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), []byte("theirs"), 0o644))
	tree, _, journal := opened(t, files{"d": "->" + outside, "f": "x"})
	s, err := tree.State("d/f")
	require.NoError(t, err)
	require.Equal(t, State{Kind: Blocked, At: "d", AtKind: Symlink}, s)
	s, err = tree.State("f/g/h")
	require.NoError(t, err)
	require.Equal(t, State{Kind: Blocked, At: "f", AtKind: File}, s)
	for _, old := range []State{{}, {Kind: File, OID: tree.hash([]byte("theirs"))}} {
		for _, path := range []string{"d/f", "d/new"} {
			c := Change{Path: path, Old: old, New: State{Kind: File, OID: tree.hash([]byte("mine"))}}
			require.Error(t, tree.Apply(t.Context(), journal, []Change{c}, files{path: "mine"}.fill))
		}
	}
	require.Equal(t, files{"f": "theirs"}, read(t, outside))
	for _, path := range []string{"", "/f", "../f", "a/../f", "./f", "a//b", "a/", ".git/config", "sub/.GIT/hooks/x", "git~1/x", "a\x00b"} {
		c := Change{Path: path, New: State{Kind: File, OID: tree.hash(nil)}}
		require.ErrorIs(t, tree.Apply(t.Context(), journal, []Change{c}, files{}.fill), ErrPath, path)
	}
}
