package child

import (
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// progress is what heartbeats and the report say of the output so far.
type progress struct {
	mu      sync.Mutex
	lines   [streams]lineTracker // guarded by mu
	bytes   [streams]int64       // guarded by mu
	latest  stream               // guarded by mu; which stream wrote last
	errTail tail                 // guarded by mu
	last    time.Time            // guarded by mu; when either wrote last
}

// write takes bytes that are in the file of s.
func (p *progress) write(s stream, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines[s].write(b)
	p.bytes[s] += int64(len(b))
	p.latest, p.last = s, time.Now()
	if s == stderr {
		p.errTail.write(b)
	}
}

// silence is how long there was no output, counted from begin at the earliest.
func (p *progress) silence(begin time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.After(begin) {
		begin = p.last
	}
	return time.Since(begin)
}

// snapshot returns the latest.
func (p *progress) snapshot() events.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return events.Progress{
		At:          time.Now().UTC(),
		LastLine:    p.lastLine(),
		StdoutBytes: p.bytes[stdout],
		StderrBytes: p.bytes[stderr],
	}
}

// lastLine is the last line of the stream that wrote last, or of the other if
// that one wrote nothing to show; p.mu is held.
func (p *progress) lastLine() string {
	if line := p.lines[p.latest].line(); line != "" {
		return line
	}
	return p.lines[1-p.latest].line()
}

// stderrTail returns the last lines of stderr.
func (p *progress) stderrTail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errTail.text()
}
