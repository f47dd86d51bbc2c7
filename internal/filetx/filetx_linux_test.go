package filetx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files is a tree in memory: "text", "x:text" executable, "->target", "/" directory.
type files map[string]string

type tb interface {
	require.TestingT
	Helper()
}

func (f files) write(t tb, dir string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		p, text := filepath.Join(dir, name), f[name]
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		switch {
		case text == "/":
			require.NoError(t, os.MkdirAll(p, 0o755))
		case strings.HasPrefix(text, "->"):
			require.NoError(t, os.Symlink(text[2:], p))
		case strings.HasPrefix(text, "x:"):
			require.NoError(t, os.WriteFile(p, []byte(text[2:]), 0o755))
		default:
			require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
		}
	}
}

// read is the reverse; directories are listed if empty.
func read(t tb, dir string) files {
	t.Helper()
	f := files{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if entries, err := os.ReadDir(p); err != nil || len(entries) == 0 {
				f[name] = "/"
				return err
			}
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			f[name] = "->" + target
			return err
		default:
			b, err := os.ReadFile(p)
			f[name] = string(b)
			if info.Mode()&0o100 != 0 {
				f[name] = "x:" + f[name]
			}
			return err
		}
		return nil
	}))
	return f
}

// change is what makes the tree hold text at a path; "" is nothing.
func change(t tb, tree *Tree, name, text string) Change {
	t.Helper()
	old, err := tree.State(name)
	require.NoError(t, err)
	c := Change{Path: name, Old: old}
	switch {
	case text == "":
	case strings.HasPrefix(text, "->"):
		c.New = State{Kind: Symlink, OID: tree.hash([]byte(text[2:]))}
	case strings.HasPrefix(text, "x:"):
		c.New = State{Kind: Executable, OID: tree.hash([]byte(text[2:]))}
	default:
		c.New = State{Kind: File, OID: tree.hash([]byte(text))}
	}
	if c.New.Kind != Absent && old.Kind == Blocked {
		c.Old = State{} // what blocks is removed
	}
	return c
}

func changes(t tb, tree *Tree, want files) []Change {
	t.Helper()
	var all []Change
	for _, name := range slices.Sorted(maps.Keys(want)) {
		all = append(all, change(t, tree, name, want[name]))
	}
	return all
}

func (f files) fill(_ context.Context, name string, w io.Writer) error {
	text := f[name]
	for _, mark := range []string{"->", "x:"} {
		text = strings.TrimPrefix(text, mark)
	}
	_, err := io.WriteString(w, text)
	return err
}

// opened is a tree and the file of its journal.
func opened(t testing.TB, f files) (tree *Tree, dir, journal string) {
	t.Helper()
	base := memoryDir(t)
	dir = filepath.Join(base, "tree")
	require.NoError(t, os.Mkdir(dir, 0o755))
	f.write(t, dir)
	tree, err := Open(dir, "sha1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tree.Close()) })
	return tree, dir, filepath.Join(base, "journal")
}

// memoryDir is a directory in memory where there is one: making a disk durable a
// thousand times is no part of what most tests are about.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "filetx")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// The one transaction that the tests of faults interrupt: it does all there is.
var (
	before = files{
		"replaced": "old", "deep/er/replaced": "old\n", "becomes executable": "x", "was executable": "x:x",
		"removed": "gone", "emptied/by/removal": "gone", "link": "->old", "file becomes link": "f", "link becomes file": "->l",
		"file becomes directory": "f", "directory becomes file/a": "a", "directory becomes file/b/c": "c", "untouched/file": "u",
	}
	wanted = files{
		"replaced": "new", "deep/er/replaced": "new\n", "becomes executable": "x:x", "was executable": "x",
		"removed": "", "emptied/by/removal": "", "link": "->new", "file becomes link": "->f", "link becomes file": "l",
		"file becomes directory": "", "file becomes directory/now": "n", "directory becomes file/a": "", "directory becomes file/b/c": "",
		"directory becomes file": "f", "new": "n", "new directory/with/file": "x:n", "new link": "->nowhere",
	}
	after = files{
		"replaced": "new", "deep/er/replaced": "new\n", "becomes executable": "x:x", "was executable": "x",
		"link": "->new", "file becomes link": "->f", "link becomes file": "l", "file becomes directory/now": "n",
		"directory becomes file": "f", "new": "n", "new directory/with/file": "x:n", "new link": "->nowhere", "untouched/file": "u",
	}
)

func TestAllIsChanged(t *testing.T) {
	for _, exchange := range []bool{true, false} {
		for _, format := range []string{"sha1", "sha256"} {
			dir, journal := t.TempDir(), filepath.Join(t.TempDir(), "journal")
			before.write(t, dir)
			tree, err := Open(dir, format)
			require.NoError(t, err)
			tree.noExchange = !exchange
			require.NoError(t, tree.Apply(t.Context(), journal, changes(t, tree, wanted), wanted.fill))
			require.Equal(t, after, read(t, dir))
			require.NoFileExists(t, journal)
			require.NoError(t, tree.Close())
		}
	}
}

// points lists where a transaction can be interrupted, in order.
func points(t *testing.T, exchange bool) []string {
	tree, _, journal := opened(t, before)
	var all []string
	tree.noExchange = !exchange
	tree.hit = func(point string) error {
		all = append(all, point)
		return nil
	}
	require.NoError(t, tree.Apply(t.Context(), journal, changes(t, tree, wanted), wanted.fill))
	require.Greater(t, len(all), 30)
	return all
}

func TestCrashAtEachStep(t *testing.T) {
	for _, exchange := range []bool{true, false} {
		for _, at := range points(t, exchange) {
			tree, dir, journal := opened(t, before)
			tree.noExchange = !exchange
			tree.hit = crashAt(at)
			require.ErrorIs(t, tree.Apply(t.Context(), journal, changes(t, tree, wanted), wanted.fill), errCrash, at)
			if at != "committed" && !strings.HasPrefix(at, "finish ") {
				require.ErrorIs(t, tree.Apply(t.Context(), journal, changes(t, tree, files{"other": "o"}), wanted.fill), fs.ErrExist,
					"nothing begins before the interrupted one is dealt with")
			}
			r, err := Recover(journal)
			require.NoError(t, err, at)
			require.Empty(t, r.Left, at)
			want, outcome := before, RolledBack
			if at == "committed" || strings.HasPrefix(at, "finish ") {
				want, outcome = after, Finished
			}
			require.Equal(t, outcome, r.Outcome, at)
			require.Equal(t, want, read(t, dir), at)
			r, err = Recover(journal)
			require.NoError(t, err)
			require.Equal(t, Recovery{}, r, "once")
		}
	}
}

// crashAt interrupts at one point, whatever the names of temporary files are.
func crashAt(at string) func(string) error {
	return func(point string) error {
		if point == at || (strings.HasPrefix(at, "finish ") && strings.HasPrefix(point, "finish ")) {
			return errCrash
		}
		return nil
	}
}

// A recovery that is itself interrupted, at every one of its steps, is taken up
// by the next.
func TestCrashWhileTakingBack(t *testing.T) {
	for _, exchange := range []bool{true, false} {
		for n := 0; ; n++ {
			tree, dir, journal := opened(t, before)
			tree.noExchange = !exchange
			tree.hit = crashAt("moved")
			require.ErrorIs(t, tree.Apply(t.Context(), journal, changes(t, tree, wanted), wanted.fill), errCrash)
			j, err := readJournal(journal)
			require.NoError(t, err)
			step := 0
			tree.hit = func(string) error {
				if step++; step > n {
					return errCrash
				}
				return nil
			}
			_, err = tree.recover(j, journal)
			_, again := Recover(journal)
			require.NoError(t, again)
			require.Equal(t, before, read(t, dir), n)
			if err == nil {
				require.Greater(t, n, 10)
				break
			}
			require.ErrorIs(t, err, errCrash)
		}
	}
}

// An error that is none of a crash takes back at once.
func TestErrorAtEachStep(t *testing.T) {
	broken := errors.New("broken")
	for _, at := range points(t, true) {
		if at == "committed" || strings.HasPrefix(at, "finish ") {
			continue
		}
		tree, dir, journal := opened(t, before)
		tree.hit = func(point string) error {
			if point == at {
				return broken
			}
			return nil
		}
		require.ErrorIs(t, tree.Apply(t.Context(), journal, changes(t, tree, wanted), wanted.fill), broken, at)
		require.Equal(t, before, read(t, dir), at)
		require.NoFileExists(t, journal, at)
	}
}

func TestWhatIsFilledIsChecked(t *testing.T) {
	tree, dir, journal := opened(t, files{"f": "x"})
	for _, name := range []string{"f", "new"} {
		c := change(t, tree, name, "announced")
		err := tree.Apply(t.Context(), journal, []Change{c}, files{name: "delivered"}.fill)
		require.ErrorContains(t, err, "object id")
	}
	require.Equal(t, files{"f": "x"}, read(t, dir))
	require.NoFileExists(t, journal)
}

func TestPermissions(t *testing.T) {
	tree, dir, journal := opened(t, files{"private": "x", "tool": "x", "script": "x:y"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "private"), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(dir, "tool"), 0o640))
	require.NoError(t, os.Chmod(filepath.Join(dir, "script"), 0o4751))
	want := files{"private": "new", "tool": "x:new", "script": "y", "secret": "s", "plain": "p"}
	all := changes(t, tree, want)
	for i := range all {
		if all[i].Path == "secret" {
			all[i].Perm = 0o600
		}
	}
	require.NoError(t, tree.Apply(t.Context(), journal, all, want.fill))
	umask := unix.Umask(0)
	unix.Umask(umask)
	for name, perm := range map[string]fs.FileMode{"private": 0o600, "tool": 0o750, "script": 0o640, "secret": 0o600, "plain": 0o666 &^ fs.FileMode(umask)} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, perm, info.Mode(), name)
	}
}

func TestInterruptedBeforeAnythingMoves(t *testing.T) {
	tree, dir, journal := opened(t, before)
	ctx, cancel := context.WithCancel(t.Context())
	tree.hit = func(point string) error {
		if point == "stage replaced" {
			cancel()
		}
		return nil
	}
	require.ErrorIs(t, tree.Apply(ctx, journal, changes(t, tree, wanted), wanted.fill), context.Canceled)
	require.Equal(t, before, read(t, dir))
	require.NoFileExists(t, journal)
}

// Any change of any tree, interrupted anywhere: all or nothing.
func TestAllOrNothing(t *testing.T) {
	base := memoryDir(t)
	var n int
	rapid.Check(t, func(rt *rapid.T) {
		n++
		root := filepath.Join(base, fmt.Sprint(n))
		dir, journal := filepath.Join(root, "tree"), filepath.Join(root, "journal")
		require.NoError(rt, os.MkdirAll(dir, 0o755))
		from, to := genTree(rt, "from"), genTree(rt, "to")
		from.write(rt, dir)
		tree, err := Open(dir, "sha1")
		require.NoError(rt, err)
		defer tree.Close()
		tree.noExchange = rapid.Bool().Draw(rt, "no exchange")

		want := maps.Clone(to)
		for name := range from {
			if _, ok := to[name]; !ok {
				want[name] = ""
			}
		}
		for name := range want {
			if from[name] == want[name] {
				delete(want, name)
			}
		}
		steps := 0
		stop := rapid.IntRange(0, 80).Draw(rt, "crash after")
		tree.hit = func(string) error {
			if steps++; steps > stop {
				return errCrash
			}
			return nil
		}
		err = tree.Apply(context.Background(), journal, changes(rt, tree, want), want.fill)
		r, again := Recover(journal)
		require.NoError(rt, again)
		require.Empty(rt, r.Left)
		if err == nil || r.Outcome == Finished {
			require.Equal(rt, to, read(rt, dir))
			return
		}
		require.ErrorIs(rt, err, errCrash)
		require.Equal(rt, from, read(rt, dir))
	})
}

// genTree draws a tree of few names, so that files, links and directories meet.
func genTree(t *rapid.T, label string) files {
	f := files{}
	for _, name := range rapid.SliceOfN(rapid.StringMatching(`[ab](/[ab]){0,2}`), 0, 6).Draw(t, label) {
		clash := false
		for other := range f {
			clash = clash || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
		}
		if !clash {
			f[name] = rapid.SampledFrom([]string{"one", "two", "x:one", "->one", "->a"}).Draw(t, name)
		}
	}
	return f
}
