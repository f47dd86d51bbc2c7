package load

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// EntryKind is what a client tells.
type EntryKind string

// What a client tells, one [Entry] each.
const (
	EntryAccepted  EntryKind = "accepted"  // the spawn is durable
	EntryRefused   EntryKind = "refused"   // its prompt was cancelled before
	EntryDelivered EntryKind = "delivered" // its end was read; it may be read again until it is acknowledged
	EntryAcked     EntryKind = "acked"     // the coordinator confirmed the acknowledgement
	EntryFault     EntryKind = "fault"     // something that must not happen
)

// Entry is one line of what a client tells.
type Entry struct {
	Kind EntryKind `json:"kind"`
	ID   string    `json:"id,omitempty"`
	Does Kind      `json:"does,omitempty"`
	At   time.Time `json:"at"`
	// Asked is when the client sent the spawn.
	Asked time.Time `json:"asked,omitzero"`
	// Stormed tells that its prompt was cancelled by then.
	Stormed bool   `json:"stormed,omitzero"`
	End     *End   `json:"end,omitempty"`
	Text    string `json:"text,omitempty"`
}

// End is how a subagent ended.
type End struct {
	DedupeID    string        `json:"dedupe_id"`
	Status      events.Status `json:"status"`
	Reason      events.Reason `json:"reason,omitempty"`
	ExitCode    *int          `json:"exit_code"`
	Signal      string        `json:"signal,omitempty"`
	Error       string        `json:"error,omitempty"` // why, where no command's exit says it
	Bytes       int64         `json:"bytes"`
	Created     time.Time     `json:"created"`
	Started     *time.Time    `json:"started,omitempty"`
	FirstOutput *time.Time    `json:"first_output,omitempty"`
	Ended       *time.Time    `json:"ended,omitempty"`
	PID         int           `json:"pid,omitzero"`
	StartTime   uint64        `json:"start_time,omitzero"`
}

// Ledger counts what became of each subagent. It is not safe for use from
// several goroutines.
type Ledger struct {
	children map[string]*child
	refused  int
	faults   []string
	stages   map[Stage][]time.Duration

	redelivered, duplicated int
}

type child struct {
	does    Kind
	dedupe  map[string]bool // whether it was acknowledged
	end     *End
	stormed bool
}

// Stage is one part of a subagent's way.
type Stage string

// The stages, in the order in which they are passed.
const (
	StageAccepted    Stage = "accepted"     // from asking to the reply that it is durable
	StageStarted     Stage = "started"      // from acceptance to the command's start
	StageFirstOutput Stage = "first_output" // from acceptance to the first output
	StageTerminal    Stage = "terminal"     // from acceptance to the end
	StageRead        Stage = "read"         // from the end to its delivery
)

// Stages lists them.
var Stages = []Stage{StageAccepted, StageStarted, StageFirstOutput, StageTerminal, StageRead}

// NewLedger returns an empty one.
func NewLedger() *Ledger {
	return &Ledger{children: make(map[string]*child), stages: make(map[Stage][]time.Duration)}
}

// Add enters what a client told.
func (l *Ledger) Add(e Entry) {
	switch e.Kind {
	case EntryAccepted:
		c := l.child(e.ID)
		c.does = e.Does
		l.time(StageAccepted, e.Asked, &e.At)
	case EntryRefused:
		l.refused++
	case EntryFault:
		l.fault("%s", e.Text)
	case EntryDelivered:
		l.deliver(e)
	case EntryAcked:
		l.child(e.ID).dedupe[e.Text] = true
	}
}

// child returns the entry of an id. The end of a subagent can be told before its
// acceptance.
func (l *Ledger) child(id string) *child {
	c := l.children[id]
	if c == nil {
		c = &child{dedupe: make(map[string]bool)}
		l.children[id] = c
	}
	return c
}

func (l *Ledger) deliver(e Entry) {
	c := l.child(e.ID)
	acked, again := c.dedupe[e.End.DedupeID]
	switch {
	case acked:
		l.duplicated++
		l.fault("%s was delivered again after its acknowledgement", e.End.DedupeID)
		return
	case again:
		l.redelivered++
		return
	case c.end != nil:
		l.duplicated++
		l.fault("%s ended twice: %s and %s", e.ID, c.end.DedupeID, e.End.DedupeID)
		return
	}
	c.dedupe[e.End.DedupeID] = false
	c.end, c.stormed = e.End, e.Stormed
	l.time(StageStarted, e.End.Created, e.End.Started)
	l.time(StageTerminal, e.End.Created, e.End.Ended)
	l.time(StageFirstOutput, e.End.Created, e.End.FirstOutput)
	if e.End.Ended != nil {
		l.time(StageRead, *e.End.Ended, &e.At)
	}
}

func (l *Ledger) time(s Stage, from time.Time, to *time.Time) {
	if to == nil || from.IsZero() {
		return
	}
	l.stages[s] = append(l.stages[s], max(to.Sub(from), 0))
}

// maxFaults bounds the faults that are kept as text.
const maxFaults = 20

func (l *Ledger) fault(format string, args ...any) {
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// Counts is the ledger's sum.
type Counts struct {
	Accepted  int `json:"accepted"`
	Refused   int `json:"refused"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	// Delivered counts subagents whose end was read, Redelivered deliveries of an
	// end that was not acknowledged yet: a reader tells them by their dedupe id.
	Delivered   int `json:"delivered"`
	Redelivered int `json:"redelivered"`
	// Duplicated counts ends that were delivered again after the acknowledgement,
	// second ends, and second runs; Lost accepted ones without an end, and ends
	// that were told of commands that never ran.
	Duplicated int `json:"duplicated"`
	Lost       int `json:"lost"`
	// Wrong counts ends that are not what the subagent does.
	Wrong int `json:"wrong"`
}

// Sum counts; ran is how often each subagent noted that it ran.
func (l *Ledger) Sum(ran map[string]int) Counts {
	n := Counts{Refused: l.refused, Redelivered: l.redelivered, Duplicated: l.duplicated}
	for _, id := range slices.Sorted(maps.Keys(l.children)) {
		c := l.children[id]
		if c.does == "" {
			n.Wrong++
			l.fault("%s ended and was never accepted", id)
			continue
		}
		n.Accepted++
		if ran[id] > 1 {
			n.Duplicated++
			l.fault("%s ran %d times", id, ran[id])
		}
		if c.end == nil {
			n.Lost++
			l.fault("%s was accepted and its end was never delivered", id)
			continue
		}
		n.Delivered++
		switch c.end.Status {
		case events.StatusCompleted:
			n.Completed++
		case events.StatusFailed:
			n.Failed++
		case events.StatusCancelled:
			n.Cancelled++
		}
		if c.end.Status == events.StatusCompleted && ran[id] == 0 {
			n.Lost++
			l.fault("%s completed and never ran", id)
		}
		if why := verdict(c.does, c.stormed, *c.end); why != "" {
			n.Wrong++
			l.fault("%s (%s) ended wrongly: %s", id, c.does, why)
		}
	}
	return n
}

// Latency sums up one stage, in milliseconds.
type Latency struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Latencies sums up each stage that was passed.
func (l *Ledger) Latencies() map[Stage]Latency {
	all := make(map[Stage]Latency, len(l.stages))
	for stage, times := range l.stages {
		slices.Sort(times)
		at := func(percent int) float64 { return milliseconds(times[(len(times)-1)*percent/100]) }
		all[stage] = Latency{Count: len(times), P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
	}
	return all
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
