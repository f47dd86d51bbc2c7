package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

// finish accepts a subagent and ends it.
func (b *bench) finish(t *testing.T, name string) *fakeservice.Agent {
	t.Helper()
	s := command("x")
	s.Name = name
	a, refusal := b.coord.Accept(s)
	require.Nil(t, refusal)
	a.Exit(0)
	return a
}

// unreadNames asks without taking.
func (b *bench) unreadNames(t *testing.T) (names []string) {
	t.Helper()
	r, err := b.c.Completions(b.ctx, events.Completions{ParentSessionID: "s", Peek: true})
	require.NoError(t, err)
	for _, c := range r.Value.Completions {
		names = append(names, c.Name)
	}
	return names
}

func TestUnreadAcknowledgesAfterTheBody(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{"one", "two", "three"} {
		b.finish(t, name)
	}
	var names []string
	for done, err := range b.c.Unread(b.ctx, UnreadOptions{Session: "s"}) {
		require.NoError(t, err)
		require.Contains(t, b.unreadNames(t), done.Name, "not before the body is through")
		names = append(names, done.Name)
	}
	require.Equal(t, []string{"one", "two", "three"}, names)
	require.Empty(t, b.unreadNames(t))
	for range b.c.Unread(b.ctx, UnreadOptions{Session: "s"}) {
		t.Fatal("a second reader gets none")
	}
}

func TestUnreadKeepsWhereTheLoopIsLeft(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{"one", "two", "three"} {
		b.finish(t, name)
	}
	for done, err := range b.c.Unread(b.ctx, UnreadOptions{Session: "s"}) {
		require.NoError(t, err)
		if done.Name == "two" {
			break
		}
	}
	require.Equal(t, []string{"two", "three"}, b.unreadNames(t))

	bad := errors.New("disk full")
	err := b.c.HandleUnread(b.ctx, UnreadOptions{Session: "s"}, func(_ context.Context, done events.Completion) error {
		if done.Name == "three" {
			return bad
		}
		return nil
	})
	require.ErrorIs(t, err, bad)
	require.Equal(t, []string{"three"}, b.unreadNames(t))
	require.NoError(t, b.c.HandleUnread(b.ctx, UnreadOptions{Session: "s", Suppress: []string{b.coord.Agent("three").ID()}},
		func(context.Context, events.Completion) error { return bad }))
	require.Equal(t, []string{"three"}, b.unreadNames(t))
}

func TestUnreadFollows(t *testing.T) {
	b := newBench(t, nil)
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	b.finish(t, "before")
	next := map[string]string{"before": "during", "during": "after"}
	var names []string
	for done, err := range b.c.Unread(ctx, UnreadOptions{Session: "s", Follow: true, Lease: time.Hour}) {
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			continue // it was the last thing
		}
		names = append(names, done.Name)
		switch follows := next[done.Name]; {
		case done.Name == "during":
			b.s.Break() // the feed has a gap
			b.finish(t, follows)
		case follows != "":
			b.finish(t, follows)
		default:
			cancel()
		}
	}
	require.Equal(t, []string{"before", "during", "after"}, names)
}

func TestUnreadErrorsAreTheLast(t *testing.T) {
	b := newBench(t, nil)
	var errs []error
	for _, err := range b.c.Unread(b.ctx, UnreadOptions{Session: "not a session"}) {
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], ErrInvalidRequest)
}

func TestItems(t *testing.T) {
	b := newBench(t, nil)
	a, refusal := b.coord.Accept(command("x"))
	require.Nil(t, refusal)
	write := func(i events.Item) {
		line, err := events.Marshal(i)
		require.NoError(t, err)
		a.Write("transcript", string(line)+"\n")
	}
	write(events.Item{Seq: 1, Kind: events.ItemCommand})
	write(events.Item{Seq: 2, Kind: events.ItemOutput})
	var seqs []uint64
	for i, err := range b.c.Items(b.ctx, events.FileRequest{ID: a.ID(), Follow: true}) {
		require.NoError(t, err)
		seqs = append(seqs, i.Seq)
		if i.Seq == 2 {
			write(events.Item{Seq: 3, Kind: events.ItemExit})
			a.Exit(0)
		}
	}
	require.Equal(t, []uint64{1, 2, 3}, seqs)
	for range b.c.Items(b.ctx, events.FileRequest{ID: a.ID()}) {
		break
	}
	a.Write("transcript", "{broken\n")
	var last error
	for _, err := range b.c.Items(b.ctx, events.FileRequest{ID: a.ID()}) {
		last = err
	}
	require.ErrorContains(t, last, "damaged line")
	for _, err := range b.c.Items(b.ctx, events.FileRequest{ID: "nobody"}) {
		require.ErrorIs(t, err, ErrUnknownID)
	}
}

func TestWatchGoesOnAfterAGap(t *testing.T) {
	b := newBench(t, nil)
	feed, err := b.c.Feed(b.ctx, FeedFilter{Session: "s"})
	require.NoError(t, err)
	b.finish(t, "one")
	gaps := 0
	for e, err := range feed.All(b.ctx) {
		if err != nil {
			require.ErrorIs(t, err, ErrFeedGap)
			gaps++
			b.finish(t, "two")
			continue
		}
		if !e.Status.Terminal() {
			continue
		}
		if gaps > 0 {
			break
		}
		b.s.Break()
	}
	require.Equal(t, 1, gaps)
	require.NoError(t, feed.Close())

	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	for _, err := range b.c.Watch(ctx, FeedFilter{}) {
		require.ErrorIs(t, err, context.Canceled)
	}
	for _, err := range b.c.Watch(b.ctx, FeedFilter{ID: "x"}) {
		require.Error(t, err)
	}
}

func TestSubagentsReadsEveryPage(t *testing.T) {
	b := newBench(t, nil)
	for range events.MaxPage + 3 {
		b.finish(t, "")
	}
	n := 0
	for s, err := range b.c.Subagents(b.ctx, events.ListActive{IncludeFinished: true}) {
		require.NoError(t, err)
		require.Equal(t, "s", s.ParentSessionID)
		n++
	}
	require.Equal(t, events.MaxPage+3, n)
	for range b.c.Subagents(b.ctx, events.ListActive{IncludeFinished: true}) {
		break
	}
}

func TestRemoveAndPrune(t *testing.T) {
	b := newBench(t, nil)
	b.finish(t, "one")
	r, err := b.c.Remove(b.ctx, events.RemoveRequest{IDs: []string{"one", "nobody"}, Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, r.Removed)
	require.Equal(t, events.RemoveNotFound, r.Results[1].Outcome)
	_, err = b.c.Remove(b.ctx, events.RemoveRequest{})
	require.ErrorIs(t, err, ErrInvalidRequest)
	b.finish(t, "two")
	r, err = b.c.Prune(b.ctx, events.PruneRequest{})
	require.NoError(t, err)
	require.Equal(t, 1, r.Unread)
	keep := -1
	_, err = b.c.Prune(b.ctx, events.PruneRequest{Keep: &keep})
	require.ErrorIs(t, err, ErrInvalidRequest)
}

func TestConnectFindsTheCoordinatorOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	s, err := fakeservice.Start(dir)
	require.NoError(t, err)
	defer s.Close()
	t.Setenv("HAYWARD_RUNTIME_DIR", dir)
	c, err := Connect(t.Context(), Options{})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	t.Setenv("HAYWARD_RUNTIME_DIR", t.TempDir())
	_, err = Connect(t.Context(), Options{})
	require.ErrorIs(t, err, ErrUnreachable)
}
