package coordinator

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// TestRow23NoCancelOfEverySession: to end whatever lives, in whichever session,
// cannot be asked for.
func TestRow23NoCancelOfEverySession(t *testing.T) {
	for _, target := range []events.CancelTarget{{Session: true}, {ParentPromptID: "p"}, {}} {
		err := events.Cancel{Target: target}.Validate()
		require.NotNil(t, err)
		require.Equal(t, events.CodeInvalidRequest, err.Code)
	}
}

// TestRow36OldestReadEndGoes: past what a session keeps, the oldest end goes and
// no other, and never one that nobody has read.
func TestRow36OldestReadEndGoes(t *testing.T) {
	const keep = 10
	w := newWorld(t, Config{Retention: Retention{PerSession: keep}, Limits: Limits{PerSession: 1000}})
	for n := range keep + 5 {
		id := idOf(fmt.Sprint(n))
		w.request("spawn", background(spawnOf(fmt.Sprint(n), "s")))
		w.run(id)
		w.end(id, completed())
		w.ackAll()
	}
	require.Len(t, w.stored, keep+5, "nobody has read any")
	most := 1
	a := w.answer(w.request("read", events.Completions{ParentSessionID: "s", Max: &most}))
	w.apply(Ack{Token: a.AckToken})
	w.ackAll()
	require.Len(t, w.stored, keep+4)
	require.NotContains(t, w.stored, idOf("0"))
}

// TestRow61RunInBackgroundDefaultsToFalse: a spawn that does not say so holds its
// caller.
func TestRow61RunInBackgroundDefaultsToFalse(t *testing.T) {
	e, err := events.DecodeRequest(events.KindSpawn, []byte(`{"parent_session_id":"s","command":["true"]}`))
	require.Nil(t, err)
	require.False(t, e.(events.Spawn).RunInBackground)
}

// TestRow65NothingToResumeIsNone: no source, null and an empty one are none; words
// are not guessed to mean none, but name a subagent.
func TestRow65NothingToResumeIsNone(t *testing.T) {
	for body, want := range map[string]string{
		`{"parent_session_id":"s"}`:                       "",
		`{"parent_session_id":"s","resume_from":""}`:      "",
		`{"parent_session_id":"s","resume_from":null}`:    "",
		`{"parent_session_id":"s","resume_from":"none"}`:  "none",
		`{"parent_session_id":"s","resume_from":"a b!!"}`: "invalid",
	} {
		e, err := events.DecodeRequest(events.KindSpawn, []byte(body))
		if want == "invalid" {
			require.NotNil(t, err, body)
			continue
		}
		require.Nil(t, err, body)
		require.Equal(t, want, e.(events.Spawn).ResumeFrom, body)
	}
}

// TestThirtyTwoOfATypeAtOnce: parallelism comes from tasks, not from types.
func TestThirtyTwoOfATypeAtOnce(t *testing.T) {
	w := newWorld(t, Config{})
	for n := range defaultPerSession + 1 {
		s := background(spawnOf(fmt.Sprint(n), "s"))
		s.SubagentType, s.Persona = "explore", "scout"
		w.request("spawn", s)
	}
	require.Len(t, w.state.slots, 32)
	require.Len(t, w.state.queued, 1)
}

// TestAThousandWaiters parks so many waits of each mode on one subagent: half
// are answered at their deadline with what is so far, the others with the end.
func TestAThousandWaiters(t *testing.T) {
	w := newWorld(t, Config{})
	for _, name := range []string{"a", "b"} {
		w.request("spawn", background(spawnOf(name, "s")))
		w.run(idOf(name))
	}
	modes := []events.Query{
		{Mode: events.QueryAll, IDs: []string{idOf("a")}},
		{Mode: events.QueryAny, IDs: []string{idOf("a"), idOf("b")}},
		{Mode: events.QueryCount, Count: 1, IDs: []string{idOf("b"), idOf("a")}},
		{Mode: events.QueryCount, Count: 2, IDs: []string{idOf("a"), idOf("a")}},
	}
	var early, late []*ticket
	for n := range 1000 {
		q := modes[n%len(modes)]
		short, long := int64(1000), int64(600_000)
		if q.Block = true; n%8 < 4 {
			q.TimeoutMS = &short
			early = append(early, w.request("early", q))
		} else {
			q.TimeoutMS = &long
			late = append(late, w.request("late", q))
		}
	}
	require.Equal(t, 1000, w.state.stats().Waiting)
	w.advance(time.Second)
	for _, to := range early {
		r := w.answer(to).Reply.(events.QueryReply)
		require.True(t, r.TimedOut)
		require.Equal(t, events.StatusRunning, r.Snapshots[0].Status)
	}
	require.Equal(t, len(late), w.state.stats().Waiting)
	w.end(idOf("a"), completed())
	w.ackAll()
	for _, to := range late {
		require.False(t, w.answer(to).Reply.(events.QueryReply).TimedOut)
	}
	require.Zero(t, w.state.stats().Waiting)
}

// TestDocumentedBehaviours: every row of the page names a script or a test that
// exists, and every script of a row is on the page.
func TestDocumentedBehaviours(t *testing.T) {
	page, err := os.ReadFile("../docs/behaviours.md")
	require.NoError(t, err)
	scripts, err := os.ReadDir("testdata/scripts/rows")
	require.NoError(t, err)
	unnamed := map[string]bool{}
	for _, s := range scripts {
		unnamed[strings.TrimSuffix(s.Name(), ".txt")] = true
	}
	seen := map[int]bool{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		row, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		require.False(t, seen[row], "row %d is there twice", row)
		seen[row] = true
		tests := cells[len(cells)-2]
		require.Regexp(t, `rows/\d\d_|Test[A-Z]`, tests, "row %d", row)
		for _, m := range regexp.MustCompile(`rows/(\w+)`).FindAllStringSubmatch(tests, -1) {
			require.True(t, strings.HasPrefix(m[1], fmt.Sprintf("%02d_", row)), "row %d names %s", row, m[1])
			require.FileExists(t, "testdata/scripts/rows/"+m[1]+".txt")
			delete(unnamed, m[1])
		}
	}
	require.Empty(t, unnamed)
	for _, row := range []int{
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19, 20, 21, 22, 23, 27, 29, 31, 32, 33, 34, 35, 37, 38, 39, 40,
		43, 44, 46, 47, 48, 49, 51, 52, 57, 58, 65, 72, 80,
	} {
		require.True(t, seen[row], "row %d", row)
	}
}
