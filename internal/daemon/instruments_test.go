package daemon

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	logged "go.uber.org/zap/zaptest/observer"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

// journalFunc is a journal of which only Put is used.
type journalFunc struct {
	coordinator.Journal
	err error
}

func (j *journalFunc) Put(context.Context, coordinator.Put) (uint64, error) { return 1, j.err }

// life writes the states of one subagent and returns the steps that were told.
func life(t *testing.T, s *stages, puts ...coordinator.Put) []step {
	t.Helper()
	var told []step
	s.watchers = append(s.watchers, func(st step) { told = append(told, st) })
	for _, p := range puts {
		_, err := s.Put(t.Context(), p)
		require.NoError(t, err)
	}
	return told
}

func TestEveryStepIsToldOnce(t *testing.T) {
	at := time.Unix(100, 0)
	queued := events.Record{ID: "a", State: events.StateQueued, CreatedAt: at}
	pending := queued
	pending.State, pending.PendingAt = events.StatePending, &at
	active := pending
	active.State, active.StartedAt = events.StateActive, &at
	ended := active
	ended.State, ended.Status, ended.EndedAt = events.StateCompleted, events.StatusCompleted, &at
	read := ended
	read.ReadAt = &at
	put := func(r events.Record, revision uint64) coordinator.Put {
		return coordinator.Put{Record: r, Revision: revision}
	}
	fresh := func() *stages {
		return &stages{Journal: &journalFunc{}, wrote: func(time.Duration, error) {}, live: make(map[string]progress)}
	}
	flags := func(told []step) (out [][5]bool) {
		for _, s := range told {
			out = append(out, [5]bool{s.accepted, s.admitted, s.started, s.ended, s.read})
		}
		return out
	}
	s := fresh()
	require.Equal(t, [][5]bool{
		{true, false, false, false, false}, {false, true, false, false, false}, {false, false, false, false, false},
		{false, false, true, false, false}, {false, false, false, true, false}, {false, false, false, false, true},
	}, flags(life(t, s, put(queued, 0), put(pending, 1), put(pending, 2), put(active, 3), put(ended, 4), put(read, 5))))
	require.Empty(t, s.live, "what has ended is forgotten")

	s = fresh()
	require.Equal(t, [][5]bool{{true, true, false, false, false}, {false, false, true, true, true}},
		flags(life(t, s, put(pending, 0), put(read, 1))), "states coalesce")

	s = fresh()
	s.restore([]coordinator.Stored{{Record: active}, {Record: events.Record{ID: "b", State: events.StateCompleted}}})
	unread := ended
	unread.ID = "b"
	require.Equal(t, [][5]bool{{false, false, false, true, false}, {false, false, false, false, false}},
		flags(life(t, s, put(ended, 7), put(unread, 8))), "of an earlier coordinator's, the end alone is new")

	s = fresh()
	s.Journal = &journalFunc{err: errors.New("full")}
	failed := 0
	s.wrote = func(_ time.Duration, err error) { require.Error(t, err); failed++ }
	s.watchers = []func(step){func(step) { t.Error("a write that failed made nothing durable") }}
	_, err := s.Put(t.Context(), put(queued, 0))
	require.Error(t, err)
	require.Equal(t, 1, failed)
}

func TestStepsAreLoggedWithTheirSubagent(t *testing.T) {
	core, said := logged.New(zap.DebugLevel)
	r := &events.Record{ID: "a", ParentSessionID: "work", Run: 1, Status: events.StatusFailed, Reason: events.ReasonExit}
	logSteps(zap.New(core))(step{record: r, started: true, ended: true})
	about := map[string]any{"id": "a", "session": "work", "run": int64(1)}
	require.Equal(t, 2, said.Len())
	require.Equal(t, "started", said.All()[0].Message)
	require.Subset(t, said.All()[0].ContextMap(), about)
	require.Equal(t, "ended", said.All()[1].Message)
	require.Subset(t, said.All()[1].ContextMap(), about)
	require.Equal(t, "exit", said.All()[1].ContextMap()["reason"])

	core, said = logged.New(zap.InfoLevel)
	logSteps(zap.New(core))(step{record: r, started: true})
	require.Zero(t, said.Len())
}

// gather reads the instruments with Prometheus's own library.
func gather(t *testing.T, i *instruments) map[string]*dto.MetricFamily {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, i.registry.Write(&b))
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(&b)
	require.NoError(t, err)
	return families
}

func TestInstruments(t *testing.T) {
	i := newInstruments("v1", time.Unix(1, 0))
	i.readFrom(sources{
		stats: func(context.Context) (coordinator.Stats, error) {
			return coordinator.Stats{Queued: 1, Pending: 2, Active: 3, Completed: 4, Unread: 5, LateReports: 6, StoreError: &events.Error{}}, nil
		},
		health: func() coordinator.Health {
			return coordinator.Health{LastTurn: time.Unix(9, 0), Backlog: 7, FeedDropped: 8}
		},
		dropped: func() int64 { return 9 },
		late:    func() int64 { return 10 },
	})
	created, started, ended, read := time.Unix(100, 0), time.Unix(101, 0), time.Unix(111, 0), time.Unix(112, 0)
	r := &events.Record{
		ID: "0192f0c1-0000-7000-8000-000000000001", Name: "secret-name", State: events.StateCompleted, Status: events.StatusFailed,
		Reason: events.ReasonSandbox, Error: &events.Error{Code: events.CodeSandboxFailed},
		CreatedAt: created, PendingAt: &created, StartedAt: &started, EndedAt: &ended, ReadAt: &read,
	}
	i.durable(step{record: r, accepted: true, admitted: true, started: true, ended: true, read: true})
	i.wrote(time.Millisecond, nil)
	i.wrote(time.Second, errors.New("no"))
	spawn := i.asks(events.KindSpawn)
	spawn.answered(coordinator.Answer{Error: events.Errorf(events.CodeUnsupported, events.LayerSandbox, "no")})
	i.asks(events.KindSpawn).answered(coordinator.Answer{Reply: events.SpawnReply{}, Reads: []string{"a"}})
	cancel := i.asks(events.KindCancel)
	cancel.of(events.Cancel{Kill: true, Target: events.CancelTarget{ParentPromptID: "p"}})
	cancel.answered(coordinator.Answer{Reply: events.CancelReply{Results: []events.CancelResult{{Outcome: "cancelled"}, {Outcome: "cancelled"}}}})
	var nobody *instruments
	none := nobody.asks(events.KindSpawn)
	none.of(events.Cancel{})
	none.answered(coordinator.Answer{})

	families := gather(t, i)
	values := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.Metric {
			series := name
			for _, l := range m.Label {
				series += " " + l.GetValue()
			}
			values[series] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	for series, want := range map[string]float64{
		"hayward_requests_total spawn unsupported": 1, "hayward_requests_total spawn ok": 1, "hayward_requests_total cancel ok": 1,
		"hayward_spawns_total unsupported": 1, "hayward_spawns_total accepted": 1,
		"hayward_cancels_total prompt kill cancelled":  2,
		"hayward_subagents_ended_total failed sandbox": 1,
		"hayward_completions_total stored":             1, "hayward_completions_total delivered": 1, "hayward_completions_total acked": 1,
		"hayward_sandbox_refusals_total sandbox_failed": 1, "hayward_sandbox_refusals_total unsupported": 1,
		"hayward_queue_wait_seconds": 0, "hayward_start_duration_seconds": 1, "hayward_run_duration_seconds": 10, "hayward_read_delay_seconds": 1,
		"hayward_store_put_duration_seconds ok": .001, "hayward_store_put_duration_seconds error": 1,
		"hayward_subagents queued": 1, "hayward_subagents pending": 2, "hayward_subagents active": 3, "hayward_subagents completed": 4,
		"hayward_completions_unread": 5, "hayward_late_reports_total": 16, "hayward_store_up": 0,
		"hayward_loop_backlog": 7, "hayward_loop_last_turn_timestamp_seconds": 9, "hayward_feed_events_dropped_total": 8,
		"hayward_bus_dropped_messages_total": 9, "process_start_time_seconds": 1,
	} {
		require.Contains(t, values, series)
		require.Equal(t, want, values[series], series)
	}
	problems, err := testutil.GatherAndLint(prometheus.GathererFunc(func() (out []*dto.MetricFamily, err error) {
		for _, f := range families {
			out = append(out, f)
		}
		return out, nil
	}))
	require.NoError(t, err)
	require.Empty(t, problems)
	for series := range values {
		require.NotContains(t, series, r.ID)
		require.NotContains(t, series, r.Name)
	}
}

// Readers ask the drain loop once a second at most, and a loop that does not
// answer costs them a second and those metrics.
func TestReadersDoNotBurdenTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		i := newInstruments("v1", time.Now())
		i.readFrom(sources{
			stats: func(ctx context.Context) (coordinator.Stats, error) {
				asked.Add(1)
				<-ctx.Done()
				return coordinator.Stats{}, ctx.Err()
			},
			health:  func() coordinator.Health { return coordinator.Health{LastTurn: time.Now(), Backlog: 3} },
			dropped: func() int64 { return 0 },
			late:    func() int64 { return 0 },
		})
		began := time.Now()
		families := gather(t, i)
		require.Equal(t, statsTimeout, time.Since(began))
		require.Empty(t, families["hayward_subagents"].GetMetric())
		require.Equal(t, 3.0, families["hayward_loop_backlog"].Metric[0].Gauge.GetValue(), "how the loop is, is known all the same")
		gather(t, i)
		require.EqualValues(t, 1, asked.Load())
		time.Sleep(statsAge)
		gather(t, i)
		require.EqualValues(t, 2, asked.Load())
	})
}
