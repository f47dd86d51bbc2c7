package client

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testDeadline bounds every wait of a test; nothing is meant to reach it.
const testDeadline = 30 * time.Second

type bench struct {
	ctx   context.Context
	s     *fakeservice.Service
	coord *fakeservice.Coordinator
	c     *Client
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	t.Cleanup(cancel)
	s, err := fakeservice.Start(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(s.Close)
	b := &bench{ctx: ctx, s: s, coord: fakeservice.NewCoordinator(s, func(*fakeservice.Coordinator) {})}
	o := Options{
		Socket: s.Socket, TokenFile: s.TokenFile, Patience: testDeadline, ProbeEvery: 20 * time.Millisecond,
		Environ: []string{"PATH=/bin", "HOME=/root", "ANTHROPIC_API_KEY=secret", "LC_ALL=C"},
	}
	if change != nil {
		change(&o)
	}
	b.c, err = Connect(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.c.Close()) })
	return b
}

func command(argv ...string) events.Spawn {
	return events.Spawn{ParentSessionID: "s", Command: argv}
}

func TestConnectSaysWhyNot(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	_, err := Connect(ctx, Options{Socket: filepath.Join(dir, "none.sock")})
	require.True(t, events.HasCode(err, events.CodeUnreachable), "%v", err)
	require.ErrorContains(t, err, "none.sock")

	s, err := fakeservice.Start(dir)
	require.NoError(t, err)
	defer s.Close()
	_, err = Connect(ctx, Options{Socket: s.Socket, TokenFile: filepath.Join(dir, "missing")})
	require.True(t, events.HasCode(err, events.CodeForbidden), "%v", err)
	require.ErrorIs(t, err, os.ErrNotExist)

	wrong := filepath.Join(dir, "wrong")
	require.NoError(t, os.WriteFile(wrong, []byte("wrong"), 0o600))
	_, err = Connect(ctx, Options{Socket: s.Socket, TokenFile: wrong})
	require.True(t, events.HasCode(err, events.CodeForbidden), "%v", err)
}

// A coordinator that dies between accept and log-in is not the last one.
func TestConnectSurvivesACoordinatorThatDies(t *testing.T) {
	dir := t.TempDir()
	first, err := fakeservice.Start(dir)
	require.NoError(t, err)
	socket := first.Socket
	first.Close()
	dying, err := net.Listen("unix", socket)
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		for range 2 {
			conn, err := dying.Accept()
			if err == nil {
				err = conn.Close()
			}
			if err != nil {
				accepted <- err
				return
			}
		}
		accepted <- nil
	}()

	revived := 0
	c, err := Connect(t.Context(), Options{Socket: socket, TokenFile: first.TokenFile, Patience: testDeadline, Revive: func(context.Context) error {
		revived++
		if revived < 2 {
			return nil // it still accepts
		}
		if err := errors.Join(<-accepted, dying.Close()); err != nil {
			return err
		}
		next, err := fakeservice.Start(dir)
		if err == nil {
			t.Cleanup(next.Close)
		}
		return err
	}})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, 2, revived)
}

func TestConnectThroughALongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	require.NoError(t, os.Mkdir(dir, 0o700))
	short := t.TempDir()
	s, err := fakeservice.StartAt(filepath.Join(short, "s"), filepath.Join(short, "t"))
	require.NoError(t, err)
	defer s.Close()
	// The socket is bound by its short name; the client knows only the long one.
	long := filepath.Join(dir, "bus.sock")
	require.NoError(t, os.Symlink(s.Socket, long))
	c, err := Connect(t.Context(), Options{Socket: long, TokenFile: s.TokenFile})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestSpawnSendsTheAllowListedEnvironment(t *testing.T) {
	b := newBench(t, nil)
	got := make(chan events.Spawn, 1)
	b.coord.Script = func(a *fakeservice.Agent) {
		got <- a.Spawn
		a.Activate()
		a.Exit(0)
	}
	s := command("true")
	s.Env = map[string]string{"PATH": "/opt/bin", "X": "1"}
	reply, err := b.c.Spawn(b.ctx, s)
	require.NoError(t, err)
	require.Equal(t, events.StatusCompleted, reply.Value.Status)
	require.Equal(t, map[string]string{"PATH": "/opt/bin", "HOME": "/root", "LC_ALL": "C", "X": "1"}, (<-got).Env)
	require.Equal(t, map[string]string{"PATH": "/opt/bin", "X": "1"}, s.Env, "the caller's map is left alone")
}

func TestAckIsPublishedOnlyWhenAsked(t *testing.T) {
	b := newBench(t, nil)
	b.coord.Script = func(a *fakeservice.Agent) { a.Exit(0) }
	reply, err := b.c.Spawn(b.ctx, command("true"))
	require.NoError(t, err)
	require.True(t, reply.NeedsAck())
	require.Zero(t, b.s.Acks())
	require.NoError(t, reply.Ack(b.ctx))
	subject, err := b.s.Ack(b.ctx)
	require.NoError(t, err)
	require.Equal(t, events.AckPrefix+".t1", subject)

	listed, err := b.c.ListActive(b.ctx, events.ListActive{})
	require.NoError(t, err)
	require.False(t, listed.NeedsAck())
	require.NoError(t, listed.Ack(b.ctx))
	require.Zero(t, b.s.Acks())
}

func TestRefusalsKeepTheirCodeAndRemedy(t *testing.T) {
	b := newBench(t, nil)
	b.s.Handle(events.RequestSubject(events.KindSpawn), func(r *fakeservice.Request) {
		r.Refuse(events.Errorf(events.CodeSandboxUnavailable, events.LayerSandbox, "no Landlock").WithRemedy("use --sandbox off").WithDetail("abi", "0"))
	})
	_, err := b.c.Spawn(b.ctx, command("true"))
	var e *events.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, events.CodeSandboxUnavailable, e.Code)
	require.Equal(t, events.LayerSandbox, e.Layer)
	require.Equal(t, "no Landlock; abi: 0 (use --sandbox off)", err.Error())
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	b := newBench(t, nil)
	var asked atomic.Int32
	b.s.Handle(events.RequestSubject(events.KindSpawn), func(*fakeservice.Request) { asked.Add(1) })
	_, err := b.c.Spawn(b.ctx, events.Spawn{Command: []string{"true"}})
	require.True(t, events.HasCode(err, events.CodeInvalidRequest), "%v", err)
	require.ErrorContains(t, err, "parent_session_id")
	require.Zero(t, asked.Load())
}

func TestDeniedSubjectIsForbidden(t *testing.T) {
	b := newBench(t, nil)
	_, err := send[events.ShutdownReply](b.ctx, b.c, "hayward.v1.other", struct{}{}, testDeadline)
	require.True(t, events.HasCode(err, events.CodeForbidden), "%v", err)
	require.ErrorContains(t, err, "hayward.v1.other")
}

func TestCallsEndWithTheClient(t *testing.T) {
	b := newBench(t, nil)
	asked := make(chan struct{})
	b.s.Handle(events.RequestSubject(events.KindOutstanding), func(*fakeservice.Request) { close(asked) })
	done := make(chan error, 1)
	go func() {
		_, err := b.c.Outstanding(b.ctx, events.Outstanding{ParentSessionID: "s", ParentPromptID: "p"})
		done <- err
	}()
	<-asked
	b.c.nc.Close()
	require.True(t, events.HasCode(<-done, events.CodeUnreachable))
}

func TestContextEndsACall(t *testing.T) {
	b := newBench(t, nil)
	ctx, cancel := context.WithCancelCause(b.ctx)
	why := errors.New("the caller left")
	b.s.Handle(events.RequestSubject(events.KindQuery), func(*fakeservice.Request) { cancel(why) })
	_, err := b.c.Query(ctx, events.Query{IDs: []string{"name"}})
	require.ErrorIs(t, err, why)
}

func TestQueriesAreRepeatedAfterALostReply(t *testing.T) {
	b := newBench(t, nil)
	var asked atomic.Int32
	b.s.Handle(events.RequestSubject(events.KindQuery), func(r *fakeservice.Request) {
		if asked.Add(1) < 3 {
			b.s.Break() // instead of a reply
			return
		}
		r.Reply(events.QueryReply{Snapshots: []events.Snapshot{}, Unknown: []string{"name"}})
	})
	r, err := b.c.Query(b.ctx, events.Query{IDs: []string{"name"}})
	require.NoError(t, err)
	require.Equal(t, []string{"name"}, r.Value.Unknown)
	require.EqualValues(t, 3, asked.Load())
}

func TestReviveIsAskedForACoordinator(t *testing.T) {
	var b *bench
	var revived atomic.Int32
	b = newBench(t, func(o *Options) {
		o.ReviveAfter = time.Millisecond
		o.Revive = func(context.Context) error { revived.Add(1); return b.s.Up() }
	})
	b.s.Down()
	_, err := b.c.Status(b.ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, revived.Load())
}

func TestReviveErrorIsReturned(t *testing.T) {
	why := errors.New("no space")
	b := newBench(t, func(o *Options) {
		o.ReviveAfter = time.Millisecond
		o.Revive = func(context.Context) error { return why }
	})
	b.s.Down()
	_, err := b.c.Status(b.ctx)
	require.ErrorIs(t, err, why)
}

func TestPatienceEnds(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Patience = 30 * time.Millisecond })
	b.s.Down()
	_, err := b.c.Status(b.ctx)
	require.True(t, events.HasCode(err, events.CodeUnreachable), "%v", err)
}

func TestPatienceEndsWithoutAService(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	defer cancel()
	s, err := fakeservice.Start(t.TempDir()) // connected, but no endpoint
	require.NoError(t, err)
	defer s.Close()
	c, err := Connect(ctx, Options{Socket: s.Socket, TokenFile: s.TokenFile, Patience: 30 * time.Millisecond})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Status(ctx)
	require.True(t, events.HasCode(err, events.CodeUnreachable), "%v", err)
}

func TestShutdownIsSentOnce(t *testing.T) {
	b := newBench(t, nil)
	var asked atomic.Int32
	b.s.Handle(events.AdminSubject(events.AdminShutdown), func(*fakeservice.Request) {
		asked.Add(1)
		b.s.Break()
	})
	_, err := b.c.Shutdown(b.ctx, events.ShutdownRequest{})
	require.True(t, events.HasCode(err, events.CodeUnreachable), "%v", err)
	require.EqualValues(t, 1, asked.Load())
}

func TestListAllReadsEveryPage(t *testing.T) {
	b := newBench(t, nil)
	for range 5 {
		_, err := b.coord.Accept(events.Spawn{ParentSessionID: "s", Command: []string{"x"}})
		require.Nil(t, err)
	}
	all, err := b.c.ListAll(b.ctx, events.ListActive{Max: 2})
	require.NoError(t, err)
	require.Len(t, all.Subagents, 5)
}

func TestWaitGoesOnBeyondOneQuery(t *testing.T) {
	b := newBench(t, nil)
	var asked atomic.Int32
	b.s.Handle(events.RequestSubject(events.KindQuery), func(r *fakeservice.Request) {
		var q events.Query
		require.Nil(t, r.Decode(&q))
		require.EqualValues(t, events.MaxQueryMS, *q.TimeoutMS)
		r.Reply(events.QueryReply{Snapshots: []events.Snapshot{}, TimedOut: asked.Add(1) < 3})
	})
	r, err := b.c.Wait(b.ctx, events.Query{IDs: []string{"name"}}, 0)
	require.NoError(t, err)
	require.False(t, r.Value.TimedOut)
	require.EqualValues(t, 3, asked.Load())
}

func TestWaitReturnsWhatIsThereAtItsEnd(t *testing.T) {
	b := newBench(t, nil)
	_, refused := b.coord.Accept(events.Spawn{ParentSessionID: "s", Name: "slow", Command: []string{"x"}})
	require.Nil(t, refused)
	r, err := b.c.Wait(b.ctx, events.Query{IDs: []string{"slow"}}, time.Millisecond)
	require.NoError(t, err)
	require.True(t, r.Value.TimedOut)
	require.Len(t, r.Value.Snapshots, 1)
}
