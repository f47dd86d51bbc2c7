package worktree

import (
	"crypto/sha1"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }

// project is what the user of these tests has committed.
var project = map[string]string{
	"text": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "other": "other\n", "tool": "x:#!/bin/sh\n", "binary": "\x00\x01\x02", "link": "->text",
	"dir/a": "a\n", "dir/b": "b\n", "crlf": "one\r\ntwo\r\n", ".gitignore": "*.o\n",
}

// template is the git directory of a project, made once.
var template = struct {
	sync.Once
	files fstest.MapFS
}{files: fstest.MapFS{}}

func newProject(t testing.TB, args ...string) *user {
	t.Helper()
	if len(args) > 0 {
		u := newUser(t, args...)
		putFiles(t, u.dir, project)
		u.commit("begin")
		return u
	}
	template.Do(func() {
		u := newUser(t)
		putFiles(t, u.dir, project)
		u.commit("begin")
		files := os.DirFS(filepath.Join(u.dir, ".git"))
		require.NoError(t, fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			f := &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			if !d.IsDir() {
				f.Mode = 0o644
				f.Data, err = fs.ReadFile(files, name)
			}
			template.files[name] = f
			return err
		}))
	})
	u := &user{t, filepath.Join(t.TempDir(), "project")}
	require.NoError(t, os.Mkdir(u.dir, 0o755))
	require.NoError(t, os.CopyFS(filepath.Join(u.dir, ".git"), template.files))
	putFiles(t, u.dir, project)
	return u
}

// with is the project after changes.
func with(changes map[string]string) map[string]string {
	all := maps.Clone(project)
	for name, text := range changes {
		if all[name] = text; text == "" {
			delete(all, name)
		}
	}
	return all
}

func TestApplyBringsEveryKindOfChange(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		u := newProject(t, "--object-format="+format)
		u.write("dirty", "of the user\n")
		u.git("add", "dirty")
		s := newSub(t, u, fixtureRoot(t))
		changes := map[string]string{
			"text": "one\n2\n3\n4\n5\n6\n7\n8\n9\n", "tool": "#!/bin/sh\n", "other": "x:other\n", "binary": "\x00\xff", "link": "->other",
			"dir/a": "", "dir/b": "", "dir": "now a file\n", "new/deep/file": "new\n", "new/link": "->/nowhere", "crlf": "one\r\n2\r\n", "na me\n\xff": "odd\n",
		}
		s.put(changes)
		s.end()
		before := u.sacred()
		r, err := s.apply()
		requireNo(t, err)
		require.True(t, r.Applied)
		require.False(t, r.Already)
		require.Empty(t, r.Conflicts)
		want := with(changes)
		want["dirty"] = "of the user\n"
		require.Equal(t, want, filesIn(t, u.dir))
		require.Equal(t, before, u.sacred())
		require.Contains(t, r.Files, FileResult{`"na me\012\377"`, ActionAdd})
		require.True(t, r.Removed, r.Kept)
		require.NoDirExists(t, s.dir)
		require.Equal(t, StateApplied, s.reread().State)

		require.NoError(t, os.WriteFile(filepath.Join(u.dir, "text"), []byte("later\n"), 0o644))
		r, err = s.apply()
		requireNo(t, err)
		require.True(t, r.Already)
		require.Equal(t, "later\n", filesIn(t, u.dir)["text"], "once is enough")
	}
}

// mergeCase is what user and subagent did to the project, and what comes of it.
type mergeCase struct {
	ours, theirs map[string]string
	want         map[string]string // what changes in the user's files
	kind         ConflictKind
	path         string
}

func mergeCases() map[string]mergeCase {
	text := func(first, last string) string { return first + "\n2\n3\n4\n5\n6\n7\n8\n" + last + "\n" }
	return map[string]mergeCase{
		"different lines":             {ours: map[string]string{"text": text("one", "9")}, theirs: map[string]string{"text": text("1", "nine")}, want: map[string]string{"text": text("one", "nine")}},
		"same change":                 {ours: map[string]string{"text": text("one", "9")}, theirs: map[string]string{"text": text("one", "9")}},
		"different files":             {ours: map[string]string{"text": text("one", "9")}, theirs: map[string]string{"other": "theirs\n"}, want: map[string]string{"other": "theirs\n"}},
		"mode here, lines there":      {ours: map[string]string{"text": "x:" + project["text"]}, theirs: map[string]string{"text": text("1", "nine")}, want: map[string]string{"text": "x:" + text("1", "nine")}},
		"lines here, mode there":      {ours: map[string]string{"text": text("one", "9")}, theirs: map[string]string{"text": "x:" + project["text"]}, want: map[string]string{"text": "x:" + text("one", "9")}},
		"both removed":                {ours: map[string]string{"text": ""}, theirs: map[string]string{"text": ""}},
		"both made the same":          {ours: map[string]string{"new": "same\n"}, theirs: map[string]string{"new": "same\n"}},
		"CRLF lines":                  {ours: map[string]string{"crlf": "one\r\ntwo\r\nthree\r\n"}, theirs: map[string]string{"crlf": "one\r\ntwo\r\n"}},
		"removed around the user's":   {ours: map[string]string{"dir/c": "mine\n"}, theirs: map[string]string{"dir/a": "", "dir/b": ""}, want: map[string]string{"dir/a": "", "dir/b": ""}},
		"removed what is a directory": {ours: map[string]string{"other": "", "other/mine": "m\n"}, theirs: map[string]string{"other": ""}},

		"content":                     {ours: map[string]string{"text": text("ours", "9")}, theirs: map[string]string{"text": text("theirs", "9")}, kind: ConflictContent, path: "text"},
		"binary":                      {ours: map[string]string{"binary": "\x00ours"}, theirs: map[string]string{"binary": "\x00theirs"}, kind: ConflictBinary, path: "binary"},
		"text became binary":          {ours: map[string]string{"text": text("ours", "9")}, theirs: map[string]string{"text": text("1", "\x00")}, kind: ConflictBinary, path: "text"},
		"add/add":                     {ours: map[string]string{"new": "ours\n"}, theirs: map[string]string{"new": "theirs\n"}, kind: ConflictAddAdd, path: "new"},
		"add/add links":               {ours: map[string]string{"new": "->ours"}, theirs: map[string]string{"new": "->theirs"}, kind: ConflictAddAdd, path: "new"},
		"add/add of an ignored file":  {ours: map[string]string{"new.o": "ours\n"}, theirs: map[string]string{"new.o": "theirs\n", ".gitignore": "\n"}, kind: ConflictAddAdd, path: "new.o"},
		"mode":                        {ours: map[string]string{"new": "x:same\n"}, theirs: map[string]string{"new": "same\n"}, kind: ConflictMode, path: "new"},
		"delete/modify":               {ours: map[string]string{"text": ""}, theirs: map[string]string{"text": text("theirs", "9")}, kind: ConflictDeleteModify, path: "text"},
		"delete/mode":                 {ours: map[string]string{"text": ""}, theirs: map[string]string{"text": "x:" + project["text"]}, kind: ConflictDeleteModify, path: "text"},
		"modify/delete":               {ours: map[string]string{"text": text("ours", "9")}, theirs: map[string]string{"text": ""}, kind: ConflictModifyDelete, path: "text"},
		"mode/delete":                 {ours: map[string]string{"tool": "#!/bin/sh\n"}, theirs: map[string]string{"tool": ""}, kind: ConflictModifyDelete, path: "tool"},
		"both changed a link":         {ours: map[string]string{"link": "->ours"}, theirs: map[string]string{"link": "->theirs"}, kind: ConflictType, path: "link"},
		"link here, file there":       {ours: map[string]string{"text": "->other"}, theirs: map[string]string{"text": text("theirs", "9")}, kind: ConflictType, path: "text"},
		"file here, link there":       {ours: map[string]string{"text": text("ours", "9")}, theirs: map[string]string{"text": "->other"}, kind: ConflictType, path: "text"},
		"file where a directory goes": {ours: map[string]string{"new": "ours\n"}, theirs: map[string]string{"new/file": "theirs\n"}, kind: ConflictDirectory, path: "new/file"},
		"link where a directory goes": {ours: map[string]string{"new": "->dir"}, theirs: map[string]string{"new/file": "theirs\n"}, kind: ConflictDirectory, path: "new/file"},
		"directory became a link":     {ours: map[string]string{"dir/a": "", "dir/b": "", "dir": "->elsewhere", "elsewhere/a": "a\n"}, theirs: map[string]string{"dir/a": "theirs\n"}, kind: ConflictDirectory, path: "dir/a"},
		"directory where a file goes": {ours: map[string]string{"new/file": "ours\n"}, theirs: map[string]string{"new": "theirs\n"}, kind: ConflictDirectory, path: "new"},
		"user's file in a directory that becomes a file":     {ours: map[string]string{"dir/c": "ours\n"}, theirs: map[string]string{"dir/a": "", "dir/b": "", "dir": "theirs\n"}, kind: ConflictDirectory, path: "dir"},
		"ignored file in a directory that becomes a file":    {ours: map[string]string{"dir/c.o": "ours\n"}, theirs: map[string]string{"dir/a": "", "dir/b": "", "dir": "theirs\n"}, kind: ConflictDirectory, path: "dir"},
		"changed file in a directory that becomes a file":    {ours: map[string]string{"dir/a": "ours\n"}, theirs: map[string]string{"dir/a": "", "dir/b": "", "dir": "theirs\n"}, kind: ConflictModifyDelete, path: "dir/a"},
		"pipe where a file was changed":                      {ours: map[string]string{"text": "fifo"}, theirs: map[string]string{"text": text("theirs", "9")}, kind: ConflictSpecial, path: "text"},
		"user's directory for a file that was changed there": {ours: map[string]string{"other": "", "other/mine": "m\n"}, theirs: map[string]string{"other": "theirs\n"}, kind: ConflictDirectory, path: "other"},
	}
}

// below puts files into a directory.
func below(dir string, files map[string]string) map[string]string {
	out := make(map[string]string, len(files))
	for name, text := range files {
		out[dir+"/"+name] = text
	}
	return out
}

// Each case has a directory with the project of its own, so that one apply meets
// all that can be merged, and another one every conflict there is.
func TestApplyMergesOrNamesTheConflict(t *testing.T) {
	for about, conflicting := range map[string]bool{"merges": false, "conflicts": true} {
		t.Run(about, func(t *testing.T) {
			u := newUser(t)
			cases := mergeCases()
			maps.DeleteFunc(cases, func(_ string, c mergeCase) bool { return (c.kind != "") != conflicting })
			dirs := slices.Sorted(maps.Keys(cases))
			for i := range dirs {
				putFiles(t, u.dir, below(fmt.Sprint(i), project))
			}
			u.commit("begin")
			s := newSub(t, u, fixtureRoot(t))
			for i, about := range dirs {
				s.put(below(fmt.Sprint(i), cases[about].theirs))
				putFiles(t, u.dir, below(fmt.Sprint(i), cases[about].ours))
			}
			s.put(map[string]string{"beside": "the conflicts\n"})
			s.end()
			sacred, before := u.sacred(), filesIn(t, u.dir)

			r, err := s.root.Apply(testContext(t), s.rec.ID, ApplyOptions{DryRun: true})
			requireNo(t, err)
			require.False(t, r.Applied)
			require.Equal(t, before, filesIn(t, u.dir), "a dry run changes nothing")
			dry := r.Conflicts
			r, err = s.apply()
			requireNo(t, err)
			require.Equal(t, dry, r.Conflicts)
			require.Equal(t, sacred, u.sacred())
			if conflicting {
				require.Equal(t, before, filesIn(t, u.dir), "nothing is applied beside a conflict")
				require.False(t, r.Applied)
				require.False(t, r.Removed)
				require.DirExists(t, s.dir)
				require.Equal(t, StateEnded, s.reread().State)
				requireConflicts(t, u, dirs, cases, r.Conflicts)
				return
			}
			require.Empty(t, r.Conflicts)
			require.True(t, r.Applied)
			want := before
			want["beside"] = "the conflicts\n"
			for i, about := range dirs {
				for name, text := range below(fmt.Sprint(i), cases[about].want) {
					if want[name] = text; text == "" {
						delete(want, name)
					}
				}
			}
			require.Equal(t, want, filesIn(t, u.dir))
		})
	}
}

// requireConflicts checks that there is one conflict for each case, with versions
// that can be looked at.
func requireConflicts(t *testing.T, u *user, dirs []string, cases map[string]mergeCase, got []Conflict) {
	t.Helper()
	var kept, ours []string
	found := map[string]ConflictKind{}
	want := map[string]ConflictKind{}
	for i, about := range dirs {
		want[fmt.Sprint(i)+"/"+cases[about].path] = cases[about].kind
	}
	for _, c := range got {
		found[c.Path] = c.Kind
		for _, v := range []*Version{c.Base, c.Theirs} {
			if v != nil {
				kept = append(kept, v.OID)
			}
		}
		if v := c.Ours; v != nil && (v.Mode == blobMode || v.Mode == execMode) && v.Path == "" {
			require.Equal(t, blobOf(filesIn(t, u.dir)[c.Path]), v.OID)
			ours = append(ours, v.OID)
		}
	}
	require.Equal(t, want, found)
	require.Greater(t, len(kept), len(dirs))
	require.GreaterOrEqual(t, len(ours), 8)
	for _, oid := range kept {
		require.NotEmpty(t, oid)
	}
	out, err := userGit(filepath.Join(u.dir, ".git"), "").OutputOf(testContext(t), Call{Stdin: strings.NewReader(strings.Join(kept, "\n") + "\n")}, "cat-file", "--batch-check=%(objecttype)")
	requireNo(t, err)
	require.Equal(t, strings.Repeat("blob\n", len(kept)), string(out), "base and theirs are in the repository")
}

// blobOf is git's id of a file as putFiles writes it.
func blobOf(text string) string {
	text = strings.TrimPrefix(text, "x:")
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text)))
}

func TestApplyOfNoChange(t *testing.T) {
	u := newProject(t)
	s := newSub(t, u, fixtureRoot(t)).end()
	r, err := s.apply()
	requireNo(t, err)
	require.True(t, r.Applied)
	require.Empty(t, r.Files)
	require.True(t, r.Removed)
}

func TestTwoThatConflict(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	one, two := newSub(t, u, root), newSub(t, u, root)
	one.put(map[string]string{"text": "one\n", "from one": "1\n"}).end()
	two.put(map[string]string{"text": "two\n", "from two": "2\n"}).end()
	r, err := one.apply()
	requireNo(t, err)
	require.True(t, r.Applied)
	sacred, before := u.sacred(), filesIn(t, u.dir)
	r, err = two.apply()
	requireNo(t, err)
	require.False(t, r.Applied)
	require.Equal(t, []Conflict{{
		Path: "text", Kind: ConflictContent,
		Base:   &Version{Mode: blobMode, OID: u.git("rev-parse", "HEAD:text")},
		Ours:   &Version{Mode: blobMode, OID: u.git("hash-object", "text")},
		Theirs: &Version{Mode: blobMode, OID: u.git("rev-parse", EndRef(two.rec.ID, RefTree)+":text")},
	}}, r.Conflicts)
	require.Equal(t, before, filesIn(t, u.dir))
	require.Equal(t, sacred, u.sacred())
}

// Two at once on one repository follow each other; each brings its own lines.
func TestAppliesAtOnceAreSerialised(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	one := newSub(t, u, root).put(map[string]string{"text": strings.Replace(project["text"], "1\n", "one\n", 1)}).end()
	two := newSub(t, u, root).put(map[string]string{"text": strings.Replace(project["text"], "9\n", "nine\n", 1)}).end()
	done := make(chan *events.Error, 2)
	for _, s := range []*sub{one, two} {
		go func() {
			r, err := s.apply()
			if err == nil && !r.Applied {
				err = workFailed(s.rec.ID, "apply", os.ErrExist)
			}
			done <- err
		}()
	}
	requireNo(t, <-done)
	requireNo(t, <-done)
	require.Equal(t, "one\n2\n3\n4\n5\n6\n7\n8\nnine\n", filesIn(t, u.dir)["text"])
}
