package plan

import (
	"io"
	"slices"
	"sync"
	"time"
)

// painter writes what a display knows. It belongs to the display's goroutine.
type painter interface {
	// paint is given all rows and the indexes of those that changed since the last
	// call, in the order of their first change.
	paint(rows []Row, changed []int, now time.Time) error
	// say writes one line for people.
	say(line string) error
	// finish takes the last state; nothing comes after it.
	finish(rows []Row, now time.Time) error
}

// display is an [Observer] that paints in a goroutine of its own, so that a
// terminal that takes nothing never holds up the run. Once a write has failed,
// as on a terminal that was closed, it paints no more and the run goes on.
type display struct {
	painter painter
	// every is how often it paints; 0: at each change.
	every time.Duration
	wake  chan struct{}
	quit  chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	rows    []Row    // guarded by mu
	changed []int    // guarded by mu
	said    []string // guarded by mu
}

func newDisplay(p painter, every time.Duration) *display {
	d := &display{
		painter: p, every: every,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go d.loop()
	return d
}

// Begin implements [Observer].
func (d *display) Begin(runID string, rows []Row) {
	d.update(func() {
		d.rows = rows
		d.said = append(d.said, beginLine(runID, rows))
	})
}

// Changed implements [Observer].
func (d *display) Changed(i int, row Row) {
	d.update(func() {
		d.rows[i] = row
		if !slices.Contains(d.changed, i) {
			d.changed = append(d.changed, i)
		}
	})
}

// Interrupted implements [Observer].
func (d *display) Interrupted(left int, kill bool) {
	d.update(func() { d.said = append(d.said, interruptLine(left, kill)) })
}

// FailedFast implements [Observer].
func (d *display) FailedFast(name string, left int) {
	d.update(func() { d.said = append(d.said, failFastLine(name, left)) })
}

// HookFailed implements [Observer].
func (d *display) HookFailed(name string, h HookResult) {
	d.update(func() { d.said = append(d.said, hookLines(name, h)...) })
}

func (d *display) update(change func()) {
	d.mu.Lock()
	change()
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// close paints the last state and returns when that is done.
func (d *display) close() {
	close(d.quit)
	<-d.done
}

func (d *display) loop() {
	defer close(d.done)
	var tick <-chan time.Time
	wake := d.wake
	if d.every > 0 {
		ticker := time.NewTicker(d.every)
		defer ticker.Stop()
		tick, wake = ticker.C, nil
	}
	for ending := false; !ending; {
		select {
		case <-wake:
		case <-tick:
		case <-d.quit:
			ending = true
		}
		if d.paint(ending) != nil {
			return
		}
	}
}

func (d *display) paint(last bool) error {
	d.mu.Lock()
	rows, changed, said := slices.Clone(d.rows), d.changed, d.said
	d.changed, d.said = nil, nil
	d.mu.Unlock()
	now := time.Now()
	for _, line := range said {
		if err := d.painter.say(line); err != nil {
			return err
		}
	}
	if err := d.painter.paint(rows, changed, now); err != nil || !last {
		return err
	}
	return d.painter.finish(rows, now)
}

// writeLines writes lines at once.
func writeLines(w io.Writer, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	var text []byte
	for _, l := range lines {
		text = append(append(text, l...), '\n')
	}
	_, err := w.Write(text)
	return err
}
