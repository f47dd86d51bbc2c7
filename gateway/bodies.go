package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// maxRequest bounds the body of a request, which is kept to be sent again.
	maxRequest = 64 << 20
	// maxHeld bounds the bodies that are kept of one subagent.
	maxHeld = 128 << 20
	// bodyBound is how long an agent may take to send a body.
	bodyBound = 2 * time.Minute
)

// bodies counts the bytes of the requests that are kept of each subagent.
type bodies struct {
	most int64
	mu   sync.Mutex
	held map[string]int64 // guarded by mu
}

func newBodies(most int64) *bodies { return &bodies{most: most, held: make(map[string]int64)} }

// errHeld: a subagent's requests under way are too large together.
var errHeld = errors.New("too much is under way")

// take adds n bytes, unless that is over the bound.
func (b *bodies) take(id string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[id]+n > b.most {
		return fmt.Errorf("%w: the requests of this subagent have over %d bytes together; retry when others are answered", errHeld, b.most)
	}
	b.held[id] += n
	return nil
}

func (b *bodies) give(id string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[id] -= n; b.held[id] == 0 {
		delete(b.held, id)
	}
}

// taking is a body that is counted as it comes.
type taking struct {
	from  io.Reader
	of    *bodies
	id    string
	taken int64
}

// Read implements [io.Reader].
func (t *taking) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	if n > 0 {
		if err := t.of.take(t.id, int64(n)); err != nil {
			return 0, err
		}
		t.taken += int64(n)
	}
	return n, err
}

// read takes the body of a request, which counts until done is called. What is wrong
// is answered, and ok then false.
func (x *exchange) read(r *http.Request) (body []byte, done func(), ok bool) {
	from := &taking{from: http.MaxBytesReader(x.w, r.Body, maxRequest), of: x.g.bodies, id: x.child}
	done = func() { x.g.bodies.give(x.child, from.taken) }
	deadline := http.NewResponseController(x.w)
	err := deadline.SetReadDeadline(time.Now().Add(x.g.opts.bodyWithin))
	if err == nil {
		body, err = io.ReadAll(from)
	}
	if err == nil {
		// The server goes on reading, to see the agent leave. After a failure the
		// deadline stays: the server may want the rest of the body.
		err = deadline.SetReadDeadline(time.Time{})
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return body, done, true
	case errors.Is(err, errHeld):
		x.refuse(http.StatusServiceUnavailable, "overloaded_error", err.Error())
	case errors.As(err, &tooLarge):
		x.refuse(http.StatusRequestEntityTooLarge, "request_too_large", err.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.refuse(http.StatusRequestTimeout, "timeout_error", fmt.Sprintf("the body of the request did not come within %s", x.g.opts.bodyWithin))
	default:
		x.refuse(http.StatusBadRequest, "invalid_request_error", "read the body: "+err.Error())
	}
	return nil, done, false
}
