package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// finished makes records of n ended subagents in ten sessions; every tenth is
// unread.
func finished(n int) []Stored {
	list := make([]Stored, n)
	at := epochStart.Add(-time.Duration(n) * time.Second)
	for i := range list {
		end := at.Add(time.Duration(i) * time.Second)
		list[i] = Stored{Revision: 1, Record: events.Record{
			ID: fmt.Sprintf("%08x-0000-7000-8000-%012x", i, uint64(i)*2654435761), Run: 1, Seq: 4,
			Name: fmt.Sprint("name", i%1000), ParentSessionID: fmt.Sprint("s", i%10), ParentPromptID: fmt.Sprint("p", i%100),
			State: events.StateCompleted, Status: events.StatusCompleted, Background: true,
			CreatedAt: end, StartedAt: &end, EndedAt: &end, EndOrder: uint64(i + 1),
			Exit: &events.Exit{}, Labels: map[string]string{"k": "v"},
		}}
		if i%10 != 0 {
			list[i].Record.ReadAt = &end
		}
	}
	return list
}

// bigState is a state with n finished subagents and one that runs.
func bigState(b *testing.B, n int) (*State, time.Time) {
	s := NewState(Config{}, "bench")
	now := epochStart
	s.Apply(Restore{Stored: finished(n)}, now)
	for _, e := range s.Apply(Request{Caller: Caller{Principal: "client"}, Event: background(spawnOf("a", "s1")), Responder: &ticket{}}, now) {
		if p, ok := e.(Persist); ok {
			s.Apply(Persisted{Record: p.Record}, now)
		}
	}
	require.Len(b, s.byID, n+1)
	return s, now
}

// BenchmarkApply shows that what is finished costs nothing: each message with 10
// and with 100 000 finished subagents.
func BenchmarkApply(b *testing.B) {
	client := Caller{Principal: "client"}
	to := &ticket{}
	requests := []struct {
		name string
		e    events.SubagentEvent
	}{
		{"query", events.Query{IDs: []string{idOf("a")}}},
		{"query by name", events.Query{IDs: []string{"name5"}, ParentSessionID: "s5"}},
		{"query by ending", events.Query{IDs: []string{idOf("a")[28:]}}},
		{"list", events.ListActive{}},
		{"list recent", events.ListActive{ParentSessionID: "s1", IncludeFinished: true, SinceMS: ms(60_000)}},
		{"list finished", events.ListActive{IncludeFinished: true, Max: 10}},
		{"completions", events.Completions{ParentSessionID: "s0", Peek: true, Max: number(10)}},
		{"outstanding", events.Outstanding{ParentSessionID: "s0", ParentPromptID: "p0"}},
		{"cancel by prompt, dry", events.Cancel{ParentSessionID: "s1", Target: events.CancelTarget{ParentPromptID: "p1"}, DryRun: true}},
		{"cancel by label, dry", events.Cancel{Target: events.CancelTarget{Label: map[string]string{"k": "v"}}, DryRun: true}},
	}
	for _, n := range []int{10, 100_000} {
		s, now := bigState(b, n)
		for _, r := range requests {
			b.Run(fmt.Sprintf("%s/finished=%d", r.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Apply(Request{Caller: client, Event: r.e, Responder: to}, now)
				}
			})
		}
		b.Run(fmt.Sprintf("completions, acknowledged/finished=%d", n), func(b *testing.B) {
			// A page of ten is leased and given back.
			b.ReportAllocs()
			for b.Loop() {
				for _, e := range s.Apply(Request{Caller: client, Event: events.Completions{ParentSessionID: "s0", Max: number(10)}, Responder: to}, now) {
					if r, ok := e.(Reply); ok && r.Answer.AckToken != "" {
						s.release(s.leases[r.Answer.AckToken])
					}
				}
			}
		})
		b.Run(fmt.Sprintf("a whole life/finished=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				life(s, fmt.Sprintf("%08x-ffff-7000-8000-%012x", i, uint64(i)*2654435761), now)
			}
		})
	}
}

// life takes one subagent from its spawn to the acknowledgement of its end.
func life(s *State, id string, now time.Time) {
	spawn := spawnOf("", "life")
	spawn.ID = id
	messages := []Message{Request{Caller: Caller{Principal: "client"}, Event: spawn, Responder: &ticket{}}}
	for len(messages) > 0 {
		m := messages[0]
		messages = messages[1:]
		for _, e := range s.Apply(m, now) {
			switch e := e.(type) {
			case Persist:
				messages = append(messages, Persisted{Record: e.Record})
			case StartChild:
				messages = append(messages, Forked{ID: id, Run: 1, Fork: events.Fork{Process: events.Process{PID: 1}}})
			case ReleaseChild:
				messages = append(messages, Started{ID: id, Run: 1}, Ended{ID: id, Run: 1, End: completed()})
			case Reply:
				messages = append(messages, Ack{Token: e.Answer.AckToken})
			}
		}
	}
}

func ms(v int64) *int64 { return &v }

func number(v int) *int { return &v }
