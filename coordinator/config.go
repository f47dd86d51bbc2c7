package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/hayward-dev/hayward/internal/deadlines"
)

// Limits bound what runs and what waits. Slots are derived from the records
// that are pending or active; a slot is free again once the end is durable.
type Limits struct {
	// PerSession and Total bound concurrent children.
	PerSession int
	Total      int
	// PerType bounds the concurrent children of a type over all sessions. A type
	// without an entry has no bound of its own: parallelism comes from tasks.
	PerType map[string]int
	// QueueLength bounds the subagents that wait for a slot. A spawn beyond it is
	// refused with [events.CodeLimit].
	QueueLength int
	// AtLimit says what becomes of a spawn for which there is no slot.
	AtLimit AtLimit
	// Depth bounds nesting: 1 allows children of clients alone.
	Depth int
}

// AtLimit is what becomes of a spawn for which there is no slot.
type AtLimit string

// The ways. [QueueAtLimit] is the default.
const (
	// QueueAtLimit lets it wait for a slot.
	QueueAtLimit AtLimit = "queue"
	// FailAtLimit answers it with [events.CodeLimit]. A record of the failure is
	// left, unread, so that the id can be asked for and a parent that did not hear
	// the answer finds it among the completions.
	FailAtLimit AtLimit = "fail"
)

// ParseAtLimit reads one of the ways; nothing is the default.
func ParseAtLimit(s string) (AtLimit, error) {
	switch a := AtLimit(s); a {
	case "", QueueAtLimit:
		return QueueAtLimit, nil
	case FailAtLimit:
		return a, nil
	}
	return "", fmt.Errorf("%q is neither %s nor %s", s, QueueAtLimit, FailAtLimit)
}

// Retention bounds what is kept of finished subagents. What lives, what nobody
// has read and what a live one uses is kept beyond it.
type Retention struct {
	// Age is how long ago an end may be.
	Age time.Duration
	// PerSession is how many finished subagents a session keeps, the latest ends.
	PerSession int
}

// Config holds the numbers of a coordinator. Zero means the default.
type Config struct {
	Limits    Limits
	Retention Retention
	// Intake bounds the requests that wait for the loop, and Outstanding those
	// that were accepted and are not answered yet. Past either a request is
	// refused with [events.CodeBusy].
	Intake      int
	Outstanding int
	// AwaitBudget bounds how long a foreground spawn that names no budget holds
	// its caller; 0 is no bound.
	AwaitBudget time.Duration
	// MaxRuntime bounds a run that names no bound.
	MaxRuntime time.Duration
	// MaxMemory bounds the memory, in bytes, of a tree whose spawn names no bound;
	// 0 is no bound.
	MaxMemory int64
	// StartDeadline bounds the time from asking for a child to its report that it
	// runs, Grace the time between SIGTERM and SIGKILL, KillProof the time from
	// SIGKILL to the proof that nothing is left.
	StartDeadline time.Duration
	// WorktreeDeadline is added to it for a child with a working tree of its own.
	WorktreeDeadline time.Duration
	Grace            time.Duration
	KillProof        time.Duration
	// PutDeadline bounds one write of a record, and FlushDeadline what is written,
	// published and answered after the loop ended.
	PutDeadline   time.Duration
	FlushDeadline time.Duration
	// AckDeadline bounds the acknowledgement of a reply, CancelReply the wait of a
	// cancel that names no bound.
	AckDeadline time.Duration
	CancelReply time.Duration
	// Now is the clock, [time.Now] by default.
	Now func() time.Time
}

// The defaults, and what follows from them.
const (
	defaultPerSession  = 32
	defaultTotal       = 256
	defaultQueueLength = 4096
	defaultDepth       = 1
	defaultIntake      = 1024
	defaultOutstanding = 64 << 10

	defaultKept = 1000
	defaultAge  = 30 * 24 * time.Hour

	// runMargin is added to a run's own deadline and grace: the child ends itself
	// first, the coordinator's timer is the backstop.
	runMargin = 5 * time.Second
	// storePatience is how long an answer is held for a store that fails.
	storePatience = 30 * time.Second
	// batch is how many messages of a kind are applied in a row.
	batch = 64
	// timersPerTick bounds the timers that fire in one [Tick].
	timersPerTick = batch
	// maxGates bounds the cancelled prompts that no record stands for.
	maxGates = 10_000
)

// withDefaults returns c with every zero filled in. A negative limit counts as
// 1: there is no way to ask for none.
func (c Config) withDefaults() Config {
	count := func(n *int, otherwise int) {
		switch {
		case *n == 0:
			*n = otherwise
		case *n < 0:
			*n = 1
		}
	}
	span := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	count(&c.Limits.PerSession, defaultPerSession)
	count(&c.Limits.Total, defaultTotal)
	count(&c.Limits.QueueLength, defaultQueueLength)
	count(&c.Limits.Depth, defaultDepth)
	c.Limits.AtLimit = cmp.Or(c.Limits.AtLimit, QueueAtLimit)
	c.Limits.PerType = maps.Clone(c.Limits.PerType)
	for t, n := range c.Limits.PerType {
		c.Limits.PerType[t] = max(n, 1)
	}
	count(&c.Retention.PerSession, defaultKept)
	span(&c.Retention.Age, defaultAge)
	count(&c.Intake, defaultIntake)
	count(&c.Outstanding, defaultOutstanding)
	d := deadlines.Default()
	span(&c.MaxRuntime, d.Run)
	span(&c.StartDeadline, d.Start)
	span(&c.Grace, d.Grace)
	span(&c.KillProof, d.KillProof)
	span(&c.PutDeadline, d.Put)
	span(&c.FlushDeadline, d.Put)
	span(&c.AckDeadline, d.Lease)
	span(&c.CancelReply, d.CancelReply)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
