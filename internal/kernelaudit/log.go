package kernelaudit

import (
	"errors"
	"slices"
	"sync"
)

// ErrOff says that there is nothing to read: audit is off, or this user may not.
var ErrOff = errors.New("kernel audit is off or may not be read")

const (
	maxDomains = 1024 // kept at once; the oldest go first
	maxDenials = 16   // kept of one domain; the oldest go first
)

// Log keeps the latest denials of each sandbox. Its methods may be called by any
// goroutine; those of a nil Log do nothing.
type Log struct {
	mu sync.Mutex
	// domains by their number in the log, order the oldest first. Guarded by mu.
	domains map[string]*domain
	order   []string

	close func() error
	done  chan struct{}
}

type domain struct {
	pid     int
	denials []Denial
}

func newLog() *Log { return &Log{domains: make(map[string]*domain), done: make(chan struct{})} }

// take enters one record.
func (l *Log) take(r record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.domains[r.domain]
	if d == nil {
		if r.ended {
			return
		}
		if len(l.order) == maxDomains {
			delete(l.domains, l.order[0])
			l.order = l.order[1:]
		}
		d = &domain{}
		l.domains[r.domain] = d
		l.order = append(l.order, r.domain)
	}
	if r.pid > 0 {
		d.pid = r.pid
	}
	if r.denial != nil {
		if len(d.denials) == maxDenials {
			d.denials = d.denials[1:]
		}
		d.denials = append(d.denials, *r.denial)
	}
}

// Take returns the denials of the sandboxes that process pid made, the latest last,
// and forgets them.
func (l *Log) Take(pid int) []Denial {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Denial
	l.order = slices.DeleteFunc(l.order, func(name string) bool {
		d := l.domains[name]
		if d.pid != pid {
			return false
		}
		out = append(out, d.denials...)
		delete(l.domains, name)
		return true
	})
	return out
}

// Close ends the reading and waits for that.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	err := l.close()
	<-l.done
	return err
}
