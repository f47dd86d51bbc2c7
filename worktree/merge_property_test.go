package worktree

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

// genFiles draws a tree of few names and contents, so that the sides meet.
func genFiles(t *rapid.T, label string) map[string]string {
	lines := rapid.Custom(func(t *rapid.T) string {
		first, last := rapid.SampledFrom([]string{"1", "a", "b"}).Draw(t, "first"), rapid.SampledFrom([]string{"9", "x", "y"}).Draw(t, "last")
		return first + "\n2\n3\n4\n5\n6\n7\n8\n" + last + "\n"
	})
	content := rapid.OneOf(lines, lines, rapid.Map(lines, func(s string) string { return "x:" + s }), rapid.SampledFrom([]string{"->a", "->b", "\x00one", "\x00two", "one line\n"}))
	files := map[string]string{}
	for _, name := range rapid.SliceOfN(rapid.StringMatching(`[abc](/[ab]){0,1}`), 1, 7).Draw(t, label) {
		clash := false
		for other := range files {
			clash = clash || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
		}
		if !clash {
			files[name] = content.Draw(t, label+" "+name)
		}
	}
	return files
}

// side draws what one of the two made of a base: some of it, and some more.
func side(t *rapid.T, base map[string]string, label string) map[string]string {
	files := maps.Clone(base)
	other := genFiles(t, label)
	for _, name := range slices.Sorted(maps.Keys(base)) {
		switch rapid.IntRange(0, 5).Draw(t, label+" does with "+name) {
		case 0:
			delete(files, name)
		case 1, 2:
			for _, another := range slices.Sorted(maps.Keys(other)) {
				files[name] = other[another]
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(other)) {
		if rapid.IntRange(0, 2).Draw(t, label+" adds "+name) > 0 {
			continue
		}
		for old := range files {
			if strings.HasPrefix(old, name+"/") || strings.HasPrefix(name, old+"/") {
				delete(files, old)
			}
		}
		files[name] = other[name]
	}
	return files
}

// commitFiles makes a commit of files in memory, by one run of git.
func commitFiles(t tester, g Git, files map[string]string, parent string) string {
	t.Helper()
	var in strings.Builder
	fmt.Fprintf(&in, "commit refs/heads/scratch\ncommitter A <a@b> 1 +0000\ndata 1\nx\n")
	if parent != "" {
		fmt.Fprintf(&in, "from %s\n", parent)
	}
	in.WriteString("deleteall\n")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mode, text := "100644", files[name]
		if body, ok := strings.CutPrefix(text, "x:"); ok {
			mode, text = "100755", body
		} else if target, ok := strings.CutPrefix(text, "->"); ok {
			mode, text = "120000", target
		}
		fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, name, len(text), text)
	}
	in.WriteString("\nget-mark :9\n")
	script := strings.Replace(in.String(), "committer", "mark :9\ncommitter", 1)
	out, err := g.OutputOf(context.Background(), Call{Stdin: strings.NewReader(script)}, "fast-import", "--quiet", "--force")
	if err != nil {
		require.NoError(t, err)
	}
	return strings.TrimSpace(string(out))
}

// threeWay are the three sides of many merges, each in a directory of its own.
type threeWay struct{ base, ours, theirs map[string]string }

func genThreeWay(t *rapid.T, merges int) threeWay {
	all := threeWay{map[string]string{}, map[string]string{}, map[string]string{}}
	for i := range merges {
		base := genFiles(t, "base")
		maps.Copy(all.base, placed(i, base))
		maps.Copy(all.ours, placed(i, side(t, base, "ours")))
		maps.Copy(all.theirs, placed(i, side(t, base, "theirs")))
	}
	return all
}

// placed puts files into a directory and their path into their content: git would
// take files of like content for renamed ones, and cannot be told not to.
func placed(dir int, files map[string]string) map[string]string {
	files = below(fmt.Sprint(dir), files)
	for name, text := range files {
		if !strings.HasSuffix(text, "\n") {
			text += " \n"
		}
		files[name] = strings.ReplaceAll(text, "\n", " "+name+"\n")
	}
	return files
}

// without leaves out directories.
func (w threeWay) without(dirs map[string]bool) threeWay {
	drop := func(files map[string]string) map[string]string {
		files = maps.Clone(files)
		maps.DeleteFunc(files, func(name, _ string) bool { return dirs[firstPart(name)] })
		return files
	}
	return threeWay{drop(w.base), drop(w.ours), drop(w.theirs)}
}

// in picks the files of a directory.
func in(dir string, files map[string]string) map[string]string {
	files = maps.Clone(files)
	maps.DeleteFunc(files, func(name, _ string) bool { return firstPart(name) != dir })
	return files
}

func firstPart(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}

// merger applies, and lets git merge the same.
type merger struct {
	u    *user
	git  Git
	root Root
}

// merge returns the tree and the directories with conflicts that git finds, and
// what an apply made of the same.
func (m merger) merge(t *rapid.T, w threeWay) (tree string, conflicts map[string]bool, r ApplyResult) {
	base := commitFiles(t, m.git, w.base, "")
	theirs, ours := commitFiles(t, m.git, w.theirs, base), commitFiles(t, m.git, w.ours, base)
	var out bytes.Buffer
	refusal := m.git.Run(context.Background(), Call{Stdout: &out}, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
	if refusal != nil {
		require.Equal(t, 1, ExitStatus(refusal), refusal)
	}
	lines := fields(out.Bytes())
	tree, conflicts = lines[0], map[string]bool{}
	for _, name := range lines[1:] {
		conflicts[firstPart(name)] = true
	}
	require.Equal(t, refusal == nil, len(conflicts) == 0)

	clear := map[string]string{}
	for name := range filesIn(t, m.u.dir) {
		clear[name] = ""
	}
	putFiles(t, m.u.dir, clear)
	putFiles(t, m.u.dir, w.ours)
	id := events.NewID()
	rec := Record{ID: id, Repository: m.u.dir, GitDir: m.git.Dir, CommonDir: m.git.Dir, Name: "project", ObjectFormat: "sha1", State: StateEnded}
	require.NoError(t, os.MkdirAll(m.root.Dir(id), 0o700))
	require.Nil(t, m.root.Write(rec))
	require.Nil(t, UpdateRefs(context.Background(), m.git.Dir, id, map[string]string{BaseRef(id, RefTree): base, EndRef(id, RefTree): theirs}))
	before := m.u.sacred()
	r, err := m.root.Apply(context.Background(), id, ApplyOptions{})
	require.Nil(t, err)
	require.Equal(t, before, m.u.sacred())
	return tree, conflicts, r
}

// For any base and any two sides, apply finds a conflict where git merge does, and
// then changes nothing; else it makes what git makes.
func TestApplyMergesAsGitDoes(t *testing.T) {
	u := &user{t, filepath.Join(t.TempDir(), "project")}
	require.NoError(t, os.Mkdir(u.dir, 0o755))
	u.git("init", "-q", "-b", "main")
	m := merger{u: u, git: userGit(filepath.Join(u.dir, ".git"), ""), root: fixtureRoot(t)}
	m.git.Config = []string{"merge.renames=false", "merge.directoryRenames=false"}
	clean, conflicting := 0, 0
	const merges = 40
	fewChecks(t, 3)
	rapid.Check(t, func(rt *rapid.T) {
		w := genThreeWay(rt, merges)
		_, conflicts, r := m.merge(rt, w)
		found := map[string]bool{}
		for _, c := range r.Conflicts {
			found[firstPart(c.Path)] = true
		}
		for i := range merges {
			if dir := fmt.Sprint(i); conflicts[dir] != found[dir] {
				rt.Fatalf("git finds a conflict: %v, apply: %v in\n%q\n%q\n%q", conflicts[dir], found[dir], in(dir, w.base), in(dir, w.ours), in(dir, w.theirs))
			}
		}
		if len(conflicts) > 0 {
			require.False(rt, r.Applied)
			require.Equal(rt, w.ours, filesIn(rt, u.dir))
		}
		w = w.without(conflicts)
		tree, conflicts, r := m.merge(rt, w)
		require.Empty(rt, conflicts)
		require.Empty(rt, r.Conflicts)
		require.Equal(rt, tree, u.git("rev-parse", commitFiles(rt, m.git, filesIn(rt, u.dir), "")+"^{tree}"))
		conflicting += len(found)
		clean += merges - len(found)
	})
	require.Positive(t, clean)
	require.Positive(t, conflicting)
	t.Logf("%d clean, %d with conflicts", clean, conflicting)
}

// fewChecks makes rapid check less often than its default, where each check is
// many.
func fewChecks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	require.NoError(t, checks.Value.Set(strconv.Itoa(n)))
	t.Cleanup(func() { require.NoError(t, checks.Value.Set(checks.DefValue)) })
}
