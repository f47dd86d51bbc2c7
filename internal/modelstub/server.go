package modelstub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is a stand-in that serves.
type Server struct {
	script Script
	http   *http.Server
	addr   string
	served chan struct{} // closed once the listener has ended
	ctx    context.Context
	stop   context.CancelFunc
	record func(Request)

	mu       sync.Mutex
	running  sync.WaitGroup // handlers; added to under mu, and not once closed
	closed   bool           // guarded by mu
	requests []Request      // guarded by mu
	changed  chan struct{}  // guarded by mu; closed and replaced at each request
	attempts map[string]int // guarded by mu; failures told, by conversation and turn
}

// Request is what a client sent.
type Request struct {
	At     time.Time   `json:"at"`
	Method string      `json:"method"`
	Path   string      `json:"path"`
	Header http.Header `json:"header"`
	Body   string      `json:"body,omitempty"`
	// Key is the [Fingerprint] of the credential.
	Key string `json:"key,omitempty"`
	// Turn is the number of the turn that it asks for.
	Turn int `json:"turn"`
}

// Options are those of [Start].
type Options struct {
	// Listen is the address. Default: a free port of 127.0.0.1.
	Listen string
	// Record, if set, is called with every request, one at a time.
	Record func(Request)
}

// Start serves a script until Close.
func Start(script Script, o Options) (*Server, error) {
	if err := script.check(); err != nil {
		return nil, err
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("modelstub: %w", err)
	}
	s := &Server{
		script: script, addr: l.Addr().String(), served: make(chan struct{}), record: o.Record,
		changed: make(chan struct{}), attempts: map[string]int{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.served)
		// It always returns an error, and Close is what brings it about.
		_ = s.http.Serve(l)
	}()
	return s, nil
}

// URL is the base of the APIs, without a path.
func (s *Server) URL() string { return "http://" + s.addr }

// Close ends every request and waits until nothing of the server is left.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	err := s.http.Close()
	<-s.served
	s.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

// Requests are the requests to a model so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Wait returns the requests once there are n of them.
func (s *Server) Wait(ctx context.Context, n int) ([]Request, error) {
	for {
		s.mu.Lock()
		got, changed := slices.Clone(s.requests), s.changed
		s.mu.Unlock()
		if len(got) >= n {
			return got, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return got, fmt.Errorf("modelstub: %d of %d requests: %w", len(got), n, ctx.Err())
		}
	}
}

// Fingerprint is the beginning of a secret's SHA-256, in hex.
func Fingerprint(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:6])
}

// maxBody bounds a request.
const maxBody = 64 << 20

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()

	api := apiOf(r.URL.Path)
	key := secretOf(r.Header)
	if len(s.script.Keys) > 0 && !slices.Contains(s.script.Keys, key) && r.Method != http.MethodHead {
		fail(w, api, Failure{Status: http.StatusUnauthorized})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(w, api, Failure{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	switch {
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		s.models(w)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages/count_tokens"):
		reply(w, map[string]any{"input_tokens": len(body) / 4})
	case r.Method == http.MethodPost && api != nil:
		s.answer(w, r, api, key, body)
	default:
		fail(w, api, Failure{Status: http.StatusNotFound})
	}
}

// answer serves one request to a model.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, api api, key string, body []byte) {
	call, err := api.parse(body)
	if err != nil {
		fail(w, api, Failure{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	rec := Request{
		At: time.Now().UTC(), Method: r.Method, Path: r.URL.Path, Header: withoutSecrets(r.Header), Body: string(body), Turn: call.turn,
	}
	if key != "" {
		rec.Key = Fingerprint(key)
	}
	s.remember(rec)

	turn, scenario, found := s.turn(rec)
	if !found {
		fail(w, api, Failure{Status: http.StatusBadRequest, Message: fmt.Sprintf("the script has no turn %d for this conversation", call.turn)})
		return
	}
	s.sleep(r.Context(), turn.DelayMS)
	if turn.Until != nil {
		select {
		case <-turn.Until:
		case <-r.Context().Done():
		case <-s.ctx.Done():
		}
	}
	failure, failing := s.failure(turn, fmt.Sprintf("%s/%d/%d", conversation(r.Header), scenario, call.turn))
	if failing && failure.Status != 0 {
		fail(w, api, failure)
		return
	}
	parts := api.parts(call, turn)
	if !call.stream && !failing && !turn.Hold {
		reply(w, parts.whole)
		return
	}
	s.send(r.Context(), w, parts, turn, failure.Cut)
}

// send streams the parts of an answer. A cut ends the connection after so many.
func (s *Server) send(ctx context.Context, w http.ResponseWriter, p parts, turn Turn, cut int) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	for i, part := range p.stream {
		if cut > 0 && i == cut {
			panic(http.ErrAbortHandler) // net/http's way to cut a connection
		}
		if i > 0 {
			s.sleep(ctx, turn.ChunkMS)
		}
		if i == len(p.stream)/2 && turn.Middle != nil {
			s.pause(ctx, turn)
		}
		// A client that went away is seen by the next lines.
		_, _ = io.WriteString(w, part)
		_ = flush.Flush()
		if turn.Hold {
			select {
			case <-ctx.Done():
			case <-s.ctx.Done():
			}
			panic(http.ErrAbortHandler)
		}
		if ctx.Err() != nil || s.ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// pause tells that half of an answer is sent and waits until it may go on.
func (s *Server) pause(ctx context.Context, turn Turn) {
	select {
	case turn.Middle <- struct{}{}:
	default:
	}
	select {
	case <-turn.Resume:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// sleep lets time go by, unless the client or the server leaves first.
func (s *Server) sleep(ctx context.Context, ms int64) {
	if ms <= 0 {
		return
	}
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

func (s *Server) remember(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	close(s.changed)
	s.changed = make(chan struct{})
	if s.record != nil {
		s.record(r)
	}
}

// turn finds the turn that a request asks for.
func (s *Server) turn(r Request) (t Turn, scenario int, found bool) {
	for i, sc := range s.script.Scenarios {
		if !strings.Contains(r.Body, sc.Match) {
			continue
		}
		switch {
		case sc.Respond != nil:
			return sc.Respond(r, r.Turn), i, true
		case r.Turn < len(sc.Turns):
			return sc.Turns[r.Turn], i, true
		case len(sc.Turns) > 0 && sc.Turns[len(sc.Turns)-1].Repeat:
			return sc.Turns[len(sc.Turns)-1], i, true
		}
		return Turn{}, i, false
	}
	return Turn{}, 0, false
}

// failure returns the failure that comes next, if one does.
func (s *Server) failure(t Turn, key string) (Failure, bool) {
	if len(t.Fail) == 0 {
		return Failure{}, false
	}
	s.mu.Lock()
	n := s.attempts[key]
	s.attempts[key]++
	s.mu.Unlock()
	switch {
	case n < len(t.Fail):
		return t.Fail[n], true
	case t.Always:
		return t.Fail[len(t.Fail)-1], true
	}
	return Failure{}, false
}
