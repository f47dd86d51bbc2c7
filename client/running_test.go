package client

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

func TestStartStreamsOutputAsItComes(t *testing.T) {
	b := newBench(t, nil)
	seen := make(chan struct{})
	b.coord.Script = func(a *fakeservice.Agent) {
		a.Activate()
		a.Write("stdout", "one\n")
		a.Write("stderr", "warn\n")
		<-seen // the client has both before the end
		a.Write("stdout", "two\n")
		a.Exit(0)
	}
	var stderr bytes.Buffer
	stdout := &notifier{want: "one\n", seen: seen}
	r, err := b.c.Start(b.ctx, command("work"), Streams{Stdout: stdout, Stderr: &stderr})
	require.NoError(t, err)
	reply, err := r.Wait()
	require.NoError(t, err)
	require.Equal(t, events.StatusCompleted, reply.Value.Status)
	require.Equal(t, "one\ntwo\n", stdout.String())
	require.Equal(t, "warn\n", stderr.String())
	<-r.Accepted()
	<-r.Ended()
}

// notifier closes seen once it holds want.
type notifier struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want string
	seen chan struct{}
	once sync.Once
}

func (n *notifier) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buf.Write(p)
	if strings.Contains(n.buf.String(), n.want) {
		n.once.Do(func() { close(n.seen) })
	}
	return len(p), nil
}

func (n *notifier) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

func TestStartCopiesAllOfACommandThatEndsAtOnce(t *testing.T) {
	b := newBench(t, nil)
	big := strings.Repeat("0123456789abcdef", 3*events.MaxChunk/16)
	b.coord.Script = func(a *fakeservice.Agent) {
		a.Write("stdout", big)
		a.Write("stderr", "e")
		a.Exit(1)
	}
	var stdout, stderr bytes.Buffer
	r, err := b.c.Start(b.ctx, command("work"), Streams{Stdout: &stdout, Stderr: &stderr})
	require.NoError(t, err)
	reply, err := r.Wait()
	require.NoError(t, err)
	require.Equal(t, 1, *reply.Value.ExitCode)
	require.True(t, stdout.String() == big, "%d of %d bytes", stdout.Len(), len(big))
	require.Equal(t, "e", stderr.String())
}

func TestStartForwardsStdinInOrder(t *testing.T) {
	b := newBench(t, nil)
	input := strings.Repeat("line of input\n", 3*events.MaxStdinChunk/14)
	b.coord.Script = func(a *fakeservice.Agent) {
		require.Equal(t, events.StdinStream, a.Spawn.Stdin)
		a.Activate()
		a.Write("stdout", a.ReadStdin())
		a.Exit(0)
	}
	var stdout bytes.Buffer
	r, err := b.c.Start(b.ctx, command("cat"), Streams{Stdin: io.NopCloser(strings.NewReader(input)), Stdout: &stdout})
	require.NoError(t, err)
	_, err = r.Wait()
	require.NoError(t, err)
	require.True(t, stdout.String() == input, "%d of %d bytes", stdout.Len(), len(input))
}

func TestStdinArrivesOnceOverBrokenConnections(t *testing.T) {
	b := newBench(t, nil)
	b.coord.Script = func(a *fakeservice.Agent) {
		a.Activate()
		for n := range 3 {
			a.AwaitStdin((n + 1) * 3)
			b.s.Break() // the reply that says so is lost as likely as not
		}
		a.Write("stdout", a.ReadStdin())
		a.Exit(0)
	}
	in, out := io.Pipe()
	go func() {
		for _, part := range []string{"aaa", "bbb", "ccc"} {
			_, _ = io.WriteString(out, part) // an error shows as missing input
		}
		_ = out.Close()
	}()
	var stdout bytes.Buffer
	r, err := b.c.Start(b.ctx, command("cat"), Streams{Stdin: in, Stdout: &stdout})
	require.NoError(t, err)
	reply, err := r.Wait()
	require.NoError(t, err)
	require.Equal(t, events.StatusCompleted, reply.Value.Status)
	require.Equal(t, "aaabbbccc", stdout.String())
}

func TestStdinOfACommandThatReadsNoMoreIsClosed(t *testing.T) {
	b := newBench(t, nil)
	closed := make(chan struct{})
	b.coord.Script = func(a *fakeservice.Agent) {
		a.CloseStdin()
		a.Activate()
		<-closed
		a.Exit(0)
	}
	in, out, err := os.Pipe()
	require.NoError(t, err)
	go func() {
		defer close(closed)
		for {
			if _, err := out.Write(make([]byte, 4096)); err != nil {
				return // the reading end is closed
			}
		}
	}()
	r, err := b.c.Start(b.ctx, command("head"), Streams{Stdin: in})
	require.NoError(t, err)
	_, err = r.Wait()
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

func TestStdinThatNeverEndsDoesNotHoldTheResult(t *testing.T) {
	b := newBench(t, nil)
	b.coord.Script = func(a *fakeservice.Agent) {
		a.Activate()
		a.AwaitStdin(1)
		a.Exit(0)
	}
	in, out, err := os.Pipe()
	require.NoError(t, err)
	_, err = out.WriteString("x")
	require.NoError(t, err)
	r, err := b.c.Start(b.ctx, command("head"), Streams{Stdin: in})
	require.NoError(t, err)
	_, err = r.Wait()
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestOutputThatNobodyTakesEndsTheCommand(t *testing.T) {
	b := newBench(t, nil)
	b.coord.Script = func(a *fakeservice.Agent) {
		a.Activate()
		a.Write("stdout", "y\n")
		stop, ok := a.Stop(1)
		if ok && stop.Actor == "closed stdout" {
			a.Cancelled("SIGTERM")
		}
	}
	why := errors.New("broken pipe")
	r, err := b.c.Start(b.ctx, command("yes"), Streams{Stdout: failingWriter{why}})
	require.NoError(t, err)
	reply, err := r.Wait()
	require.ErrorIs(t, err, why)
	var stream *StreamError
	require.ErrorAs(t, err, &stream)
	require.Equal(t, "stdout", stream.Stream)
	require.Equal(t, events.StatusCancelled, reply.Value.Status)
}

func TestRefusedStartClosesStdin(t *testing.T) {
	b := newBench(t, nil)
	b.s.Handle(events.RequestSubject(events.KindSpawn), func(r *fakeservice.Request) {
		r.Refuse(events.Errorf(events.CodeCommandNotFound, events.LayerGate, "no such command"))
	})
	in, out, err := os.Pipe()
	require.NoError(t, err)
	r, err := b.c.Start(b.ctx, command("nope"), Streams{Stdin: in, Stdout: io.Discard, Stderr: io.Discard})
	require.NoError(t, err)
	_, err = r.Wait()
	require.True(t, events.HasCode(err, events.CodeCommandNotFound), "%v", err)
	_, err = in.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrClosed)
	require.NoError(t, out.Close())
}

func TestStreamsOutliveARestart(t *testing.T) {
	b := newBench(t, nil)
	restarted := make(chan struct{})
	b.coord.Script = func(a *fakeservice.Agent) {
		a.Activate()
		a.Write("stdout", "before\n")
		<-restarted
		a.Write("stdout", "after\n")
		a.Exit(0)
	}
	stdout := &notifier{want: "before\n", seen: make(chan struct{})}
	r, err := b.c.Start(b.ctx, command("work"), Streams{Stdout: stdout})
	require.NoError(t, err)
	<-stdout.seen
	b.s.Down()
	require.NoError(t, b.s.Up())
	close(restarted)
	reply, err := r.Wait()
	require.NoError(t, err)
	require.Equal(t, events.StatusCompleted, reply.Value.Status)
	require.Equal(t, "before\nafter\n", stdout.String())
}

func TestCopyLogWithoutFollowEndsAtTheEndOfNow(t *testing.T) {
	b := newBench(t, nil)
	a, refused := b.coord.Accept(events.Spawn{ParentSessionID: "s", Name: "x", Command: []string{"x"}})
	require.Nil(t, refused)
	a.Activate()
	a.Write("stdout", "1\n2\n3\n")
	var all, last bytes.Buffer
	next, err := b.c.CopyLog(b.ctx, &all, events.FileRequest{ID: "x"})
	require.NoError(t, err)
	require.EqualValues(t, 6, next)
	require.Equal(t, "1\n2\n3\n", all.String())
	two := 2
	_, err = b.c.CopyLog(b.ctx, &last, events.FileRequest{ID: "x", Tail: &two})
	require.NoError(t, err)
	require.Equal(t, "2\n3\n", last.String())
}

func TestFeedTellsOfGaps(t *testing.T) {
	b := newBench(t, nil)
	feed, err := b.c.Feed(b.ctx, FeedFilter{Session: "mine"})
	require.NoError(t, err)
	for _, session := range []string{"theirs", "mine"} {
		_, refused := b.coord.Accept(events.Spawn{ParentSessionID: session, Command: []string{"x"}})
		require.Nil(t, refused)
	}
	e, err := feed.Next(b.ctx)
	require.NoError(t, err)
	require.Equal(t, "mine", e.Session)
	require.Equal(t, events.StateQueued, e.State)

	b.s.Break()
	_, err = feed.Next(b.ctx)
	require.ErrorIs(t, err, ErrFeedGap)

	a, refused := b.coord.Accept(events.Spawn{ParentSessionID: "mine", Command: []string{"x"}})
	require.Nil(t, refused)
	e, err = feed.Next(b.ctx)
	require.NoError(t, err)
	require.Equal(t, a.ID(), e.SubagentID)
	require.NoError(t, feed.Close())
}
