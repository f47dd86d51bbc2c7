package worktree

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

// Whatever a subagent left, whatever happened to it since and whatever gc is asked
// to do: the bytes of each file of a directory that it removed are in some ref or
// in the user's working tree.
func TestCollectLosesNothing(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	removed, stayed := 0, 0
	fewChecks(t, 12)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`[a-z]{8}\n`)
		name := rapid.SampledFrom([]string{"text", "other", "new", "dir/a", "dir/b", "deep/er", "x.o"})
		files := func(label string, most int) map[string]string {
			return rapid.MapOfN(name, text, 0, most).Draw(rt, label)
		}
		s := newSub(t, u, root)
		s.put(files("left", 3)).end()
		if rapid.IntRange(0, 3).Draw(rt, "touched after the end") == 0 {
			s.put(files("later", 2))
		}
		before := filesIn(rt, s.dir)
		switch rapid.SampledFrom([]string{"", "apply", "apply and edit", "branch", "branch and delete it", "no end"}).Draw(rt, "then") {
		case "apply":
			_, err := s.apply()
			require.Nil(rt, err)
		case "apply and edit":
			_, err := s.apply()
			require.Nil(rt, err)
			putFiles(rt, u.dir, files("of the user", 2))
		case "branch":
			_, err := root.Branch(context.Background(), s.rec.ID, "b/"+s.rec.ID)
			require.Nil(rt, err)
		case "branch and delete it":
			_, err := root.Branch(context.Background(), s.rec.ID, "b/"+s.rec.ID)
			require.Nil(rt, err)
			u.git("update-ref", "-d", "refs/heads/b/"+s.rec.ID)
		case "no end":
			s.rec.State = StateLive
			s.write()
		}
		o := GCOptions{Saved: rapid.Bool().Draw(rt, "--saved"), DryRun: rapid.Bool().Draw(rt, "--dry-run")}
		there := !gone(s.dir)
		items, err := root.GC(context.Background(), o)
		require.Nil(rt, err)
		for _, i := range items {
			require.Nil(rt, i.Error)
		}
		defer func() { // the next one begins with an empty root
			require.NoError(rt, os.RemoveAll(root.Dir(s.rec.ID)))
		}()
		require.True(rt, !o.DryRun || !there || !gone(s.dir), "a dry run removes nothing")
		if !gone(s.dir) {
			stayed++
			return
		}
		removed++
		require.NotEqual(rt, StateLive, s.rec.State, "it lives")
		held := blobsHeld(rt, u)
		users := slices.Collect(maps.Values(filesIn(rt, u.dir)))
		for name, body := range before {
			require.True(rt, held[blobOf(body)] || slices.Contains(users, body), "%s is lost: %q", name, body)
		}
	})
	require.Positive(t, removed)
	require.Positive(t, stayed)
	t.Logf("%d removed, %d stayed", removed, stayed)
}

// blobsHeld are the objects that some ref of the user's repository reaches.
func blobsHeld(t tester, u *user) map[string]bool {
	t.Helper()
	held := map[string]bool{}
	for line := range strings.Lines(u.git("rev-list", "--objects", "--all")) {
		oid, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		held[oid] = true
	}
	require.NotEmpty(t, held)
	return held
}

// events.NewID makes ids of one order in time: lists are in that of creation.
func TestEntriesAreInOrder(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	one, two := newSub(t, u, root), newSub(t, u, root)
	require.NoError(t, os.Mkdir(root.Dir(events.NewID()), 0o700))
	list, err := root.Entries(testContext(t))
	requireNo(t, err)
	require.Len(t, list, 3)
	require.Equal(t, []string{one.rec.ID, two.rec.ID}, []string{list[0].ID, list[1].ID})
	require.Equal(t, one.dir, list[0].Path)
	require.Equal(t, events.CodeUnknownID, list[2].Error.Code)
}
