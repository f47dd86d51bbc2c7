package daemon

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/metrics"
)

// instruments are the metrics of one daemon. Labels hold words of the contract
// alone: no ids, no names, no sessions.
type instruments struct {
	registry metrics.Registry

	requests, spawns, cancels, ended, completions, refusals *metrics.Counter
	queueWait, start, run, read, put                        *metrics.Histogram
}

// Upper bounds of the buckets, in seconds.
var (
	writeBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5}
	startBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	runBuckets   = []float64{.01, .05, .1, .5, 1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 14400}
)

func newInstruments(version string, started time.Time) *instruments {
	i := &instruments{}
	r := &i.registry
	r.Func(metrics.KindGauge, "hayward_build_info", "Version of this program; the value is 1.", []string{"version", "goversion"},
		func(emit func(float64, ...string)) { emit(1, version, runtime.Version()) })
	i.requests = r.Counter("hayward_requests_total", "Answered requests by event and error code; the code of a success is ok.", "event", "code")
	i.spawns = r.Counter("hayward_spawns_total", "Answered spawns by outcome: accepted, or the code of the refusal.", "outcome")
	i.cancels = r.Counter("hayward_cancels_total", "Subagents that a cancel met, by its scope (id, prompt, session, label), its verb and what became of them.", "scope", "verb", "outcome")
	i.ended = r.Counter("hayward_subagents_ended_total", "Subagents whose end is durable, by status and reason; the reason of a success is none.", "status", "reason")
	i.completions = r.Counter("hayward_completions_total", "Completions by stage: stored with the end, delivered in a reply (perhaps more than once), acked by a reader.", "stage")
	i.refusals = r.Counter("hayward_sandbox_refusals_total", "Subagents whose sandbox could not be had as asked, by error code.", "code")
	i.queueWait = r.Histogram("hayward_queue_wait_seconds", "From the acceptance of a subagent to its slot.", startBuckets)
	i.start = r.Histogram("hayward_start_duration_seconds", "From the acceptance of a subagent to its confined and running process.", startBuckets)
	i.run = r.Histogram("hayward_run_duration_seconds", "From the running process of a subagent to its end.", runBuckets)
	i.read = r.Histogram("hayward_read_delay_seconds", "From the end of a subagent to the acknowledgement of its reader.", runBuckets)
	i.put = r.Histogram("hayward_store_put_duration_seconds", "Writes of records into the store, by result (ok or error).", writeBuckets, "result")
	for _, stage := range []string{"stored", "delivered", "acked"} {
		i.completions.Add(0, stage)
	}
	r.Process(started)
	return i
}

// sources are what is read when somebody asks for the metrics.
type sources struct {
	stats   func(context.Context) (coordinator.Stats, error)
	health  func() coordinator.Health
	dropped func() int64
	late    func() int64
}

const (
	// statsTimeout bounds the one question to the drain loop, statsAge how long its
	// answer, or the want of one, is used: readers cannot keep the loop busy.
	statsTimeout = time.Second
	statsAge     = time.Second
)

// readFrom adds what is not counted here but read. Only [coordinator.Stats] is asked
// of the loop; a loop that does not answer leaves those metrics out.
func (i *instruments) readFrom(from sources) {
	r := &i.registry
	var mu sync.Mutex
	var last coordinator.Stats
	var known bool
	var asked time.Time
	stats := func() (coordinator.Stats, bool) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(asked) < statsAge {
			return last, known
		}
		ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
		defer cancel()
		st, err := from.stats(ctx)
		last, known, asked = st, err == nil, time.Now()
		return last, known
	}
	gauge := func(name, help string, of func(coordinator.Stats) float64) {
		r.Func(metrics.KindGauge, name, help, nil, func(emit func(float64, ...string)) {
			if st, ok := stats(); ok {
				emit(of(st))
			}
		})
	}
	r.Func(metrics.KindGauge, "hayward_subagents", "Subagents by state.", []string{"state"}, func(emit func(float64, ...string)) {
		st, ok := stats()
		if !ok {
			return
		}
		emit(float64(st.Queued), string(events.StateQueued))
		emit(float64(st.Pending), string(events.StatePending))
		emit(float64(st.Active), string(events.StateActive))
		emit(float64(st.Completed), string(events.StateCompleted))
	})
	gauge("hayward_subagents_stopping", "Live subagents that were told to end.", func(s coordinator.Stats) float64 { return float64(s.Stopping) })
	gauge("hayward_completions_unread", "Ends that nobody has read.", func(s coordinator.Stats) float64 { return float64(s.Unread) })
	gauge("hayward_spawn_queue_depth", "Accepted subagents that wait for a slot.", func(s coordinator.Stats) float64 { return float64(s.Queued) })
	gauge("hayward_store_unsettled_records", "Records whose latest state is not durable yet.", func(s coordinator.Stats) float64 { return float64(s.Unsettled) })
	gauge("hayward_store_up", "Whether records can be written (1) or not (0).", func(s coordinator.Stats) float64 {
		if s.StoreError != nil {
			return 0
		}
		return 1
	})
	gauge("hayward_requests_waiting", "Requests that wait for something to happen.", func(s coordinator.Stats) float64 { return float64(s.Waiting) })

	plain := func(kind metrics.Kind, name, help string, read func() float64) {
		r.Func(kind, name, help, nil, func(emit func(float64, ...string)) { emit(read()) })
	}
	plain(metrics.KindGauge, "hayward_loop_backlog", "Messages that wait for the drain loop.", func() float64 { return float64(from.health().Backlog) })
	plain(metrics.KindGauge, "hayward_loop_last_turn_timestamp_seconds", "When the drain loop turned last, in seconds since the epoch; it rests while it has nothing to do.",
		func() float64 { return float64(from.health().LastTurn.UnixNano()) / 1e9 })
	plain(metrics.KindGauge, "hayward_requests_unanswered", "Requests that were accepted and not answered yet.", func() float64 { return float64(from.health().Unanswered) })
	plain(metrics.KindCounter, "hayward_feed_events_dropped_total", "Feed events that could not be published.", func() float64 { return float64(from.health().FeedDropped) })
	plain(metrics.KindCounter, "hayward_bus_dropped_messages_total", "Messages that the daemon's own subscriptions lost because they were slow consumers.", func() float64 { return float64(from.dropped()) })
	r.Func(metrics.KindCounter, "hayward_late_reports_total", "Reports of runs that had ended; they were dropped.", nil, func(emit func(float64, ...string)) {
		if st, ok := stats(); ok {
			emit(float64(from.late() + st.LateReports))
		}
	})
}

// wrote counts a write of a record.
func (i *instruments) wrote(took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	i.put.Observe(took.Seconds(), result)
}

// durable counts what became durable of a subagent.
func (i *instruments) durable(s step) {
	r := s.record
	if s.admitted {
		i.queueWait.Observe(seconds(r.CreatedAt, *r.PendingAt))
	}
	if s.started {
		i.start.Observe(seconds(r.CreatedAt, *r.StartedAt))
	}
	if s.ended {
		reason := string(r.Reason)
		if reason == "" {
			reason = "none"
		}
		i.ended.Inc(string(r.Status), reason)
		i.completions.Inc("stored")
		if r.StartedAt != nil && r.EndedAt != nil {
			i.run.Observe(seconds(*r.StartedAt, *r.EndedAt))
		}
		if r.Reason == events.ReasonSandbox && r.Error != nil {
			i.refusals.Inc(string(r.Error.Code))
		}
	}
	if s.read {
		i.completions.Inc("acked")
		if r.EndedAt != nil {
			i.read.Observe(seconds(*r.EndedAt, *r.ReadAt))
		}
	}
}

func seconds(from, to time.Time) float64 { return max(to.Sub(from).Seconds(), 0) }

// asked is a request that is under way, to be counted when it is answered. A nil
// one counts nothing.
type asked struct {
	to   *instruments
	kind events.Kind
	// scope and verb are those of a cancel.
	scope, verb string
}

// asks notes a request.
func (i *instruments) asks(kind events.Kind) *asked {
	if i == nil {
		return nil
	}
	return &asked{to: i, kind: kind}
}

// of completes a by what was asked for.
func (a *asked) of(e events.SubagentEvent) {
	c, is := e.(events.Cancel)
	if a == nil || !is {
		return
	}
	a.verb, a.scope = "cancel", "session"
	if c.Kill {
		a.verb = "kill"
	}
	switch t := c.Target; {
	case len(t.IDs) > 0:
		a.scope = "id"
	case t.ParentPromptID != "":
		a.scope = "prompt"
	case len(t.Label) > 0:
		a.scope = "label"
	}
}

// answered counts the answer.
func (a *asked) answered(with coordinator.Answer) {
	if a == nil {
		return
	}
	code := "ok"
	if with.Error != nil {
		code = string(with.Error.Code)
	}
	a.to.requests.Inc(string(a.kind), code)
	a.to.completions.Add(int64(len(with.Reads)), "delivered")
	if reply, is := with.Reply.(events.CancelReply); is {
		for _, r := range reply.Results {
			a.to.cancels.Inc(a.scope, a.verb, string(r.Outcome))
		}
	}
	if a.kind != events.KindSpawn {
		return
	}
	if with.Error == nil {
		code = "accepted"
	} else if with.Error.Layer == events.LayerSandbox {
		a.to.refusals.Inc(code)
	}
	a.to.spawns.Inc(code)
}
