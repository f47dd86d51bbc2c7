package daemon

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// tracker keeps the latest of each live child beside the drain loop: progress
// from items and heartbeats, and who follows its output.
type tracker struct {
	log *zap.Logger
	// lost is how long a child may be silent.
	lost time.Duration
	// late counts reports of runs that are not live.
	late atomic.Int64

	mu sync.Mutex
	// children holds every child from fork to end, and those that somebody
	// follows; guarded by mu.
	children map[string]*tracked
}

// tracked is one child; guarded by the tracker's mu.
type tracked struct {
	live      bool
	followers int
	progress  events.Progress
	known     bool      // progress was reported
	heard     time.Time // of the child's supervisor last, or when it was expected first
	// changed is closed and replaced whenever there is more to read or know.
	changed chan struct{}
}

func newTracker(lost time.Duration, log *zap.Logger) *tracker {
	return &tracker{log: log, lost: lost, children: make(map[string]*tracked)}
}

// subscribe takes the reports of all children. Each kind has a subscription of
// its own, so that a flood of items holds up no heartbeat.
func (t *tracker) subscribe(nc *nats.Conn) error {
	for report, handle := range map[events.ChildReport]func(id string, data []byte) error{
		events.ChildItem:      t.onItem,
		events.ChildHeartbeat: t.onHeartbeat,
		events.ChildResult:    t.onResult,
	} {
		_, err := nc.Subscribe(events.ChildSubjectAll(report), func(m *nats.Msg) {
			id, ok := events.ChildIDOf(m.Subject)
			if !ok {
				return
			}
			if err := handle(id, m.Data); err != nil {
				t.log.Warn("report of a child not understood", zap.String("id", id), zap.String("subject", m.Subject), zap.Error(err))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// entry returns the child's entry, made if need be. The caller holds mu.
func (t *tracker) entry(id string) *tracked {
	c := t.children[id]
	if c == nil {
		c = &tracked{changed: make(chan struct{})}
		t.children[id] = c
	}
	return c
}

// notify wakes the followers. The caller holds mu.
func (c *tracked) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// begin expects reports of the child.
func (t *tracker) begin(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.entry(id)
	c.live, c.heard = true, time.Now()
	c.notify()
}

// onFeed follows the durable states: after the end no more reports are expected.
func (t *tracker) onFeed(e events.FeedEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.children[e.SubagentID]
	if c == nil {
		return
	}
	if e.State == events.StateCompleted {
		c.live = false
		t.drop(e.SubagentID, c)
	}
	c.notify()
}

// drop forgets a child that is neither live nor followed. The caller holds mu.
func (t *tracker) drop(id string, c *tracked) {
	if !c.live && c.followers == 0 {
		delete(t.children, id)
	}
}

// follow registers interest in id until release is called. Call changed before
// each look, or a change is missed.
func (t *tracker) follow(id string) (changed func() <-chan struct{}, release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.entry(id)
	c.followers++
	changed = func() <-chan struct{} {
		t.mu.Lock()
		defer t.mu.Unlock()
		return c.changed
	}
	release = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		c.followers--
		t.drop(id, c)
	}
	return changed, release
}

// progress returns the latest of a running subagent, or nil. A child that was not
// heard of for too long is shown as that and not ended: it may work well behind a
// connection that does not.
func (t *tracker) progress(id string) *events.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.children[id]
	if c == nil || !c.live {
		return nil
	}
	lost := time.Since(c.heard) > t.lost
	if !c.known && !lost {
		return nil
	}
	p, heard := c.progress, c.heard.UTC()
	p.HeartbeatAt, p.HeartbeatLost = &heard, lost
	return &p
}

func (t *tracker) update(id string, f func(*tracked)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.children[id]
	if c == nil || !c.live {
		t.late.Add(1)
		return
	}
	f(c)
	c.notify()
}

func (t *tracker) onItem(id string, data []byte) error {
	var item events.Item
	if err := events.DecodeRecord(data, &item); err != nil {
		return err
	}
	t.update(id, func(c *tracked) {
		if item.Stream == "" {
			return // it is not of the output
		}
		c.known = true
		c.progress.At = item.At
		end := item.Offset + item.Bytes
		switch item.Stream {
		case "stdout":
			c.progress.StdoutBytes = max(c.progress.StdoutBytes, end)
		case "stderr":
			c.progress.StderrBytes = max(c.progress.StderrBytes, end)
		}
		said := item.Kind == events.ItemOutput || item.Kind == events.ItemMessage
		if line := lastLine(item.Text); said && line != "" {
			c.progress.LastLine = line
		}
	})
	return nil
}

func (t *tracker) onHeartbeat(id string, data []byte) error {
	var beat events.Heartbeat
	if err := events.DecodeRecord(data, &beat); err != nil {
		return err
	}
	t.update(id, func(c *tracked) {
		c.known = true
		c.progress, c.heard = beat.Progress, time.Now()
		c.progress.LastLine = clipLine(beat.Progress.LastLine)
	})
	return nil
}

func (t *tracker) onResult(id string, data []byte) error {
	var report events.Report
	if err := events.DecodeRecord(data, &report); err != nil {
		return err
	}
	t.update(id, func(*tracked) {})
	return nil
}
