package bus

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/internal/lograte"
)

// serverLog gives the server's warnings and errors to our log. The server tells
// of damage to its store nowhere else.
type serverLog struct {
	log *zap.Logger
	// onWriteError is told when a stream stopped taking writes.
	onWriteError func(error)
	// expected tells the errors that are none.
	expected func(line string) bool

	// violations are lines that a client can cause as often as it likes.
	violations lograte.Logger

	mu       sync.Mutex
	fatalErr error
}

// Debugf and Tracef implement the server's Logger.
func (l *serverLog) Debugf(string, ...any) {}
func (l *serverLog) Tracef(string, ...any) {}

// Noticef implements the server's Logger. A connection that is cut because it
// does not read is only a notice to the server; to us it is lost messages.
func (l *serverLog) Noticef(format string, args ...any) {
	if strings.Contains(format, "Slow Consumer") {
		l.Warnf(format, args...)
	}
}

// Warnf implements the server's Logger.
func (l *serverLog) Warnf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	l.log.Warn(line)
	l.watch(line)
}

// Errorf implements the server's Logger.
func (l *serverLog) Errorf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if l.expected(line) {
		l.log.Debug(line)
		return
	}
	if slices.ContainsFunc(violations, func(words string) bool { return strings.Contains(line, words) }) {
		l.violations.Log(l.log.Error, line)
		return
	}
	l.log.Error(line)
	l.watch(line)
}

// violations are the words in which the server says that a client did what it may
// not, or said what it does not understand.
var violations = []string{"Violation", "parse error", "authentication error", "maximum payload", "maximum connections", "maximum subscriptions"}

// writeErrors are the words in which the server says that a stream, or all of
// them, stopped taking writes. A publisher gets no answer then. Were the words
// to change, puts would run into their deadline instead.
var writeErrors = []string{"critical write error", "disabling jetstream", "will be disabled"}

func (l *serverLog) watch(line string) {
	low := strings.ToLower(line)
	if slices.ContainsFunc(writeErrors, func(words string) bool { return strings.Contains(low, words) }) {
		l.onWriteError(errors.New(line))
	}
}

// Fatalf implements the server's Logger. The server goes on after it, half
// started, so [Start] asks for it.
func (l *serverLog) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	l.log.Error(err.Error())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatalErr == nil {
		l.fatalErr = err
	}
}

func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatalErr
}

// dropCounter sums what subscriptions lost. The client library reports a
// subscription once when it begins to lose messages and counts in it after.
type dropCounter struct {
	mu   sync.Mutex
	last map[*nats.Subscription]int
	past int64 // of subscriptions that are gone
}

// watch begins to count sub and returns what it has lost so far.
func (d *dropCounter) watch(sub *nats.Subscription) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last = make(map[*nats.Subscription]int)
	}
	n, err := sub.Dropped()
	if err != nil {
		// Closed already: at least the message that was reported is lost.
		d.past++
		return 1
	}
	d.last[sub] = n
	return int64(n)
}

func (d *dropCounter) total() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := int64(0)
	for sub, n := range d.last {
		now, err := sub.Dropped()
		if err != nil {
			d.past += int64(n)
			delete(d.last, sub)
			continue
		}
		d.last[sub] = now
		sum += int64(now)
	}
	return d.past + sum
}
