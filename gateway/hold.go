package gateway

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// hold keeps requests back until an upstream takes them again. All subagents that
// use the upstream share it.
type hold struct {
	mu    sync.Mutex
	until time.Time // guarded by mu
}

// extend holds until at least t.
func (h *hold) extend(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.After(h.until) {
		h.until = t
	}
}

// wait returns once nothing is held back, or ctx ends.
func (h *hold) wait(ctx context.Context) error {
	for {
		h.mu.Lock()
		left := time.Until(h.until)
		h.mu.Unlock()
		if left <= 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// again reports whether an answer is worth another attempt.
func again(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, statusOverloaded:
		return true
	}
	return false
}

// statusOverloaded is how Anthropic's API says that it is overloaded.
const statusOverloaded = 529

// Bounds of the pauses between attempts.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
	// maxAfter bounds what a Retry-After is believed.
	maxAfter = 5 * time.Minute
)

// pause is how long to wait after attempt n, counted from 1, and whether all
// requests to the upstream wait with it.
func pause(n int, status int, header http.Header, now time.Time) (d time.Duration, shared bool) {
	d = min(maxPause, firstPause<<min(n-1, 10))
	shared = status == http.StatusTooManyRequests || status == statusOverloaded
	if after, ok := retryAfter(header, now); ok {
		return min(after, maxAfter), true
	}
	return d, shared
}

// retryAfter reads the header: seconds, milliseconds in the form of OpenAI and
// Anthropic's libraries, or a date.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond)), true
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second)), true
	}
	if t, err := http.ParseTime(text); err == nil {
		return max(t.Sub(now), 0), true
	}
	return 0, false
}
