package client

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

// loseReplies makes the service accept spawns and cut the connection instead of
// answering, n times.
func loseReplies(t *testing.T, b *bench, n int32, lose func(), then fakeservice.Handler) *atomic.Int32 {
	t.Helper()
	var asked atomic.Int32
	b.s.Handle(events.RequestSubject(events.KindSpawn), func(r *fakeservice.Request) {
		if asked.Add(1) > n {
			then(r)
			return
		}
		var s events.Spawn
		require.Nil(t, r.Decode(&s))
		_, err := b.coord.Accept(s)
		require.Nil(t, err)
		lose()
	})
	return &asked
}

func duplicate(r *fakeservice.Request) {
	r.Refuse(events.Errorf(events.CodeDuplicateID, events.LayerCoordinator, "taken"))
}

func TestForegroundSpawnOutlivesALostReply(t *testing.T) {
	b := newBench(t, nil)
	release := make(chan struct{})
	b.coord.Script = func(a *fakeservice.Agent) {
		a.Activate()
		<-release
		a.Write("stdout", "done\n")
		a.Exit(3)
	}
	asked := loseReplies(t, b, 1, b.s.Break, func(r *fakeservice.Request) {
		defer close(release)
		duplicate(r)
	})
	reply, err := b.c.Spawn(b.ctx, command("work"))
	require.NoError(t, err)
	require.Equal(t, 3, *reply.Value.ExitCode)
	require.Equal(t, "done\n", reply.Value.Output.Text)
	require.True(t, reply.Value.Accepted)
	require.False(t, reply.Value.Backgrounded)
	require.EqualValues(t, 2, asked.Load())
	require.Equal(t, 1, b.coord.Spawned())

	require.NoError(t, reply.Ack(b.ctx), "a result that was collected is read as well")
	_, err = b.s.Ack(b.ctx)
	require.NoError(t, err)
}

func TestForegroundSpawnOutlivesARestart(t *testing.T) {
	b := newBench(t, nil)
	release := make(chan struct{})
	b.coord.Script = func(a *fakeservice.Agent) {
		a.Activate()
		<-release
		a.Exit(0)
	}
	down := make(chan struct{})
	go func() {
		if b.coord.Agent("job") != nil {
			b.s.Down()
			close(down)
		}
	}()
	s := command("work")
	s.Name = "job"
	go func() {
		<-down
		close(release) // it ends while there is no coordinator
		_ = b.s.Up()   // the spawn below fails if it did not come up
	}()
	reply, err := b.c.Spawn(b.ctx, s)
	require.NoError(t, err)
	require.Equal(t, events.StatusCompleted, reply.Value.Status)
	require.Equal(t, 1, b.coord.Spawned())
}

func TestSpawnOutlivesANameTakenByItself(t *testing.T) {
	b := newBench(t, nil)
	b.coord.Script = func(a *fakeservice.Agent) { a.Exit(0) }
	loseReplies(t, b, 1, b.s.Break, func(r *fakeservice.Request) {
		r.Refuse(events.Errorf(events.CodeDuplicateName, events.LayerCoordinator, "a live subagent is called so"))
	})
	reply, err := b.c.Spawn(b.ctx, command("work"))
	require.NoError(t, err)
	require.Equal(t, events.StatusCompleted, reply.Value.Status)
}

func TestBackgroundSpawnOutlivesALostReply(t *testing.T) {
	b := newBench(t, nil)
	loseReplies(t, b, 1, b.s.Break, duplicate)
	s := command("work")
	s.RunInBackground = true
	reply, err := b.c.Spawn(b.ctx, s)
	require.NoError(t, err)
	require.True(t, reply.Value.Backgrounded)
	require.True(t, reply.Value.Accepted)
	require.Nil(t, reply.Value.Success)
	require.True(t, events.ValidID(reply.Value.SubagentID))
	require.False(t, reply.NeedsAck())
}

func TestAReplyLostOnALivingConnectionIsFound(t *testing.T) {
	b := newBench(t, nil)
	b.coord.Script = func(a *fakeservice.Agent) { a.Exit(0) }
	loseReplies(t, b, 1, func() {}, duplicate)
	reply, err := b.c.Spawn(b.ctx, command("work"))
	require.NoError(t, err)
	require.Equal(t, events.StatusCompleted, reply.Value.Status)
}

func TestARequestLostOnALivingConnectionIsRepeated(t *testing.T) {
	b := newBench(t, nil)
	b.coord.Script = func(a *fakeservice.Agent) { a.Exit(0) }
	var asked atomic.Int32
	b.s.Handle(events.RequestSubject(events.KindSpawn), func(r *fakeservice.Request) {
		if asked.Add(1) == 1 {
			return // neither accepted nor answered
		}
		var s events.Spawn
		require.Nil(t, r.Decode(&s))
		a, err := b.coord.Accept(s)
		require.Nil(t, err)
		a.Exit(0)
		r.Reply(events.SpawnReply{Snapshot: a.Snapshot(), Accepted: true})
	})
	reply, err := b.c.Spawn(b.ctx, command("work"))
	require.NoError(t, err)
	require.Equal(t, events.StatusCompleted, reply.Value.Status)
	require.EqualValues(t, 2, asked.Load())
}

// Busy means that nothing was done: it is asked again, with the same id.
func TestABusyCoordinatorIsAskedAgain(t *testing.T) {
	b := newBench(t, nil)
	var asked atomic.Int32
	b.s.Handle(events.RequestSubject(events.KindListActive), func(r *fakeservice.Request) {
		if asked.Add(1) < 3 {
			r.Refuse(events.Errorf(events.CodeBusy, events.LayerCoordinator, "the intake is full"))
			return
		}
		r.Reply(events.ListActiveReply{})
	})
	_, err := b.c.ListActive(b.ctx, events.ListActive{})
	require.NoError(t, err)
	require.EqualValues(t, 3, asked.Load())
}

func TestAMuteCoordinatorIsATimeout(t *testing.T) {
	b := newBench(t, nil)
	b.s.Handle(events.RequestSubject(events.KindSpawn), func(*fakeservice.Request) {})
	b.s.Handle(events.RequestSubject(events.KindQuery), func(r *fakeservice.Request) {
		r.Refuse(events.Errorf(events.CodeBusy, events.LayerCoordinator, "the intake is full"))
	})
	_, err := b.c.Spawn(b.ctx, command("work"))
	require.True(t, events.HasCode(err, events.CodeTimeout), "%v", err)
	require.ErrorContains(t, err, "the intake is full")
}

func TestAnIDTakenBeforeIsNotOurs(t *testing.T) {
	b := newBench(t, nil)
	id := events.NewID()
	_, refused := b.coord.Accept(events.Spawn{ID: id, ParentSessionID: "s", Command: []string{"other"}})
	require.Nil(t, refused)

	s := command("work")
	s.ID = id
	_, err := b.c.Spawn(b.ctx, s)
	require.True(t, events.HasCode(err, events.CodeDuplicateID), "%v", err)

	// The same when the first refusal is lost.
	var asked atomic.Int32
	b.s.Handle(events.RequestSubject(events.KindSpawn), func(r *fakeservice.Request) {
		if asked.Add(1) == 1 {
			b.s.Break()
			return
		}
		duplicate(r)
	})
	_, err = b.c.Spawn(b.ctx, s)
	require.True(t, events.HasCode(err, events.CodeDuplicateID), "%v", err)
}

func TestARefusedRepetitionIsRefused(t *testing.T) {
	b := newBench(t, nil)
	var asked atomic.Int32
	b.s.Handle(events.RequestSubject(events.KindSpawn), func(r *fakeservice.Request) {
		if asked.Add(1) == 1 {
			b.s.Break() // lost before it was accepted
			return
		}
		r.Refuse(events.Errorf(events.CodeLimit, events.LayerGate, "the queue is full"))
	})
	_, err := b.c.Spawn(b.ctx, command("work"))
	require.True(t, events.HasCode(err, events.CodeLimit), "%v", err)
}

func TestAwaitBudgetHoldsOverALostReply(t *testing.T) {
	b := newBench(t, nil)
	loseReplies(t, b, 1, b.s.Break, duplicate)
	s := command("work")
	budget := int64(5)
	s.AwaitBudgetMS = &budget
	reply, err := b.c.Spawn(b.ctx, s)
	require.NoError(t, err)
	require.True(t, reply.Value.Backgrounded)
	require.Nil(t, reply.Value.Success)
}
