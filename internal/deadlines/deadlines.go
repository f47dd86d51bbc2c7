// Package deadlines defines how long each step of a subagent's life may take: the
// values, their names, and what happens at each. The parts are given theirs from
// a [Set]; docs/reliability.md shows the table.
package deadlines

import (
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Set holds every deadline of one daemon.
type Set struct {
	Start         time.Duration
	Control       time.Duration
	Grace         time.Duration
	KillProof     time.Duration
	Drain         time.Duration
	CancelReply   time.Duration
	Heartbeat     time.Duration
	HeartbeatLost time.Duration
	Run           time.Duration
	Put           time.Duration
	Lease         time.Duration
	BusWrite      time.Duration
}

// Deadline describes one member of a [Set].
type Deadline struct {
	// Name is the flag of serve, and what status calls it.
	Name    string
	Default time.Duration
	// Bounds is what is bounded, and At what happens at the end, for people.
	Bounds, At string
	value      func(*Set) *time.Duration
}

// Of returns the place of the deadline in s.
func (d Deadline) Of(s *Set) *time.Duration { return d.value(s) }

// All lists every deadline, in the order of a subagent's life.
var All = []Deadline{
	{"start-timeout", 10 * time.Second, "from asking for a child to its report that it runs",
		"the start is undone: failed, reason start, error start_timeout", func(s *Set) *time.Duration { return &s.Start }},
	{"max-runtime", 4 * time.Hour, "a run whose request names no bound",
		"the stop ladder: failed, reason deadline, output kept", func(s *Set) *time.Duration { return &s.Run }},
	{"heartbeat", 5 * time.Second, "the time between two heartbeats of a child",
		"the child sends one", func(s *Set) *time.Duration { return &s.Heartbeat }},
	{"heartbeat-lost", 30 * time.Second, "the silence of a child's supervisor",
		"it is shown as heartbeat_lost; nothing is ended", func(s *Set) *time.Duration { return &s.HeartbeatLost }},
	{"control-timeout", time.Second, "a child's answer to the order to stop",
		"it is killed at once", func(s *Set) *time.Duration { return &s.Control }},
	{"grace", 10 * time.Second, "a command's time between SIGTERM and SIGKILL",
		"SIGKILL for the whole tree", func(s *Set) *time.Duration { return &s.Grace }},
	{"kill-proof", 10 * time.Second, "from SIGKILL to the proof that no process is left",
		"SIGKILL again, an error in the log; the end is not told before the proof", func(s *Set) *time.Duration { return &s.KillProof }},
	{"drain-timeout", 2 * time.Second, "from the end of a child to the end of its bus connection",
		"the connection is cut", func(s *Set) *time.Duration { return &s.Drain }},
	{"cancel-timeout", events.DefaultCancelMS * time.Millisecond, "a cancel whose request names no bound",
		"it answers draining for what is left; the ladder goes on", func(s *Set) *time.Duration { return &s.CancelReply }},
	{"put-timeout", 5 * time.Second, "one write of a record or of a feed event",
		"storage_failed; the write is repeated until it succeeds", func(s *Set) *time.Duration { return &s.Put }},
	{"lease-timeout", events.DefaultLeaseMS * time.Millisecond, "the acknowledgement of a reply that carries an end",
		"the end stays unread", func(s *Set) *time.Duration { return &s.Lease }},
	{"write-timeout", 10 * time.Second, "a write to a client or child that does not read",
		"its connection is cut", func(s *Set) *time.Duration { return &s.BusWrite }},
}

// Default returns the documented values.
func Default() Set {
	var s Set
	return s.WithDefaults()
}

// WithDefaults returns s with every zero filled in.
func (s Set) WithDefaults() Set {
	for _, d := range All {
		if v := d.Of(&s); *v <= 0 {
			*v = d.Default
		}
	}
	return s
}
