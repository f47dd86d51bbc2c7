// Package lograte bounds what others can make us log. A subagent that does what it
// may not is worth a line; ten thousand of them fill a disk.
package lograte

import (
	"sync"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// The lines of one kind: so many at once, then one every ten seconds.
const (
	burst    = 20
	lineRate = rate.Limit(0.1)
)

// Logger passes lines on as long as they do not come too fast. Its zero value is
// ready; several goroutines may use it.
type Logger struct {
	mu      sync.Mutex
	limiter *rate.Limiter // guarded by mu; nil before the first line
	left    int64         // guarded by mu: lines left out since the last
}

// Log calls write, or leaves the line out. The next line that passes has the number
// of those before it as a field.
func (l *Logger) Log(write func(string, ...zap.Field), line string, fields ...zap.Field) {
	l.mu.Lock()
	if l.limiter == nil {
		l.limiter = rate.NewLimiter(lineRate, burst)
	}
	if !l.limiter.Allow() {
		l.left++
		l.mu.Unlock()
		return
	}
	if l.left > 0 {
		fields = append(fields, zap.Int64("lines_left_out", l.left))
		l.left = 0
	}
	l.mu.Unlock()
	write(line, fields...)
}
