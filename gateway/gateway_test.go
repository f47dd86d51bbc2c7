package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// world is a coordinator's bus and gateway, and a model API.
type world struct {
	t          *testing.T
	dir, store string
	api        *httptest.Server
	opts       Options

	// What goes away with the coordinator.
	server *bus.Server
	g      *Gateway
	tokens map[string]string // by subagent
}

const realKey = "the-real-key"

func newWorld(t *testing.T, api http.HandlerFunc, change ...func(*Options)) *world {
	w := &world{t: t, dir: testkit.Dir(t), store: t.TempDir(), api: httptest.NewServer(api), tokens: make(map[string]string)}
	t.Cleanup(w.api.Close)
	w.opts = Options{
		Secret: []byte("secret"), Patience: 10 * time.Second,
		Upstreams: []Upstream{{Name: "anthropic", Base: w.api.URL, KeyEnv: "KEY"}},
		Getenv:    func(name string) string { return map[string]string{"KEY": realKey}[name] },
	}
	for _, c := range change {
		c(&w.opts)
	}
	w.up()
	t.Cleanup(w.down)
	return w
}

// up starts the coordinator's part.
func (w *world) up() {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	var err error
	w.server, err = bus.Start(ctx, bus.Options{StoreDir: w.store})
	require.NoError(w.t, err)
	for id, token := range w.tokens {
		w.server.Grant(id, bus.HashToken(token))
	}
	w.opts.Bus, err = w.server.Conn("gateway")
	require.NoError(w.t, err)
	w.g, err = Start(w.opts)
	require.NoError(w.t, err)
	require.NoError(w.t, w.opts.Bus.Flush())
	require.NoError(w.t, w.server.ServeChildren(w.dir))
}

// down ends it.
func (w *world) down() {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	require.NoError(w.t, w.g.Close())
	require.NoError(w.t, w.server.Shutdown(ctx))
}

// agentRun is a child with an agent inside.
type agentRun struct {
	id    string
	child *testkit.ChildProcess
}

// run starts an agent. A step with the key "own" has its own credential.
func (w *world) run(steps ...step) agentRun {
	w.t.Helper()
	id, token := events.NewID(), "token"
	for i := range steps {
		if steps[i].Key == "" {
			steps[i].Key = Credential(w.opts.Secret, id, 1)
		}
		if steps[i].Method == "" {
			steps[i].Method, steps[i].Path = "POST", "/anthropic/v1/messages"
		}
	}
	script, err := json.Marshal(steps)
	require.NoError(w.t, err)
	w.tokens[id] = token
	w.server.Grant(id, bus.HashToken(token))
	spec := events.ChildSpec{
		ID: id, Run: 1, Token: token, Argv: []string{"/proc/self/exe"}, Cwd: "/", Relay: true, GraceMS: 1000,
		Env: []string{agentVariable + "=" + string(script), "RELAY=http://" + events.RelayAddress},
	}
	spec.Argv[0], err = os.Executable()
	require.NoError(w.t, err)
	return agentRun{id, testkit.StartChild(w.t, testkit.ChildOptions{Spec: spec, BusDir: w.dir})}
}

// said waits until the agent has printed a text n times.
func (a agentRun) said(t *testing.T, text string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(string(a.child.File("stdout.log")), text) >= n }, testkit.Patience, 10*time.Millisecond)
}

// told waits for the end and returns what the agent said.
func (a agentRun) told(t *testing.T) []told {
	t.Helper()
	r := a.child.Report()
	require.NotNil(t, r.Exit)
	require.NotNil(t, r.Exit.Code, "%+v", r)
	require.Zero(t, *r.Exit.Code, r.StderrTail)
	var all []told
	for _, line := range strings.Split(string(a.child.File("stdout.log")), "\n") {
		if text, ok := strings.CutPrefix(line, "told "); ok {
			var one told
			require.NoError(t, json.Unmarshal([]byte(text), &one))
			all = append(all, one)
		}
	}
	return all
}

func stream(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, p := range parts {
		io.WriteString(w, p)
		http.NewResponseController(w).Flush()
	}
}

func TestForward(t *testing.T) {
	var mu sync.Mutex
	var seen []http.Header
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Clone())
		mu.Unlock()
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Set-Cookie", "a=b")
		fmt.Fprintf(w, `{"model":"claude-x","bytes":%d,"usage":{"input_tokens":1,"output_tokens":2}}`, n)
	})
	a := w.run(
		step{Body: "hello"},
		step{Body: strings.Repeat("x", 1024), Times: 5 << 10},
		step{Key: "sk-ant-somebody-elses", Body: "x"},
		step{Method: "POST", Path: "/anthropic/v1/files", Body: "x"},
		step{Method: "POST", Path: "/anthropic/../admin", Body: "x"},
		step{Method: "POST", Path: "/elsewhere/v1/messages", Body: "x"},
		step{Method: "GET", Path: "/anthropic/v1/models"},
	)
	all := a.told(t)
	require.Len(t, all, 7)
	require.Contains(t, all[0].Body, `"bytes":5,`)
	require.Contains(t, all[1].Body, `"bytes":5242880,`)
	require.Equal(t, http.StatusUnauthorized, all[2].Status)
	for _, refused := range all[3:6] {
		require.Equal(t, http.StatusNotFound, refused.Status, refused.Body)
	}
	require.Equal(t, http.StatusOK, all[6].Status)
	require.Len(t, seen, 3)
	for _, h := range seen {
		require.Equal(t, realKey, h.Get("X-Api-Key"))
		require.Empty(t, h.Get("Authorization"))
	}
	used := w.g.Forget(a.id)
	require.Equal(t, events.Usage{InputTokens: 3, OutputTokens: 6}, used)
}

func TestStreamArrivesAsItComes(t *testing.T) {
	first, last := anthropicStream[:200], anthropicStream[200:]
	seen := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, first)
		<-seen
		stream(w, last)
	})
	a := w.run(step{Body: "x"}, step{Body: "x"})
	// The agent has the first part while the rest is still to come.
	a.said(t, "line event: message_start", 1)
	close(seen)
	for _, one := range a.told(t) {
		require.Equal(t, anthropicStream, one.Body)
	}
	require.EqualValues(t, 84, w.g.Forget(a.id).OutputTokens)
}

func TestTriesAgain(t *testing.T) {
	var mu sync.Mutex
	var times []time.Time
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		times = append(times, time.Now())
		n := len(times)
		mu.Unlock()
		switch n {
		case 1:
			w.Header().Set("Retry-After-Ms", "300")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.WriteHeader(statusOverloaded)
		default:
			b, err := io.ReadAll(r.Body)
			if err != nil || string(b) != "the body" {
				t.Errorf("%q %v", b, err)
			}
			io.WriteString(w, `{}`)
		}
	})
	a := w.run(step{Body: "the body"})
	require.Equal(t, http.StatusOK, a.told(t)[0].Status)
	require.Len(t, times, 4)
	require.GreaterOrEqual(t, times[1].Sub(times[0]), 300*time.Millisecond)
}

func TestGivesUpInTime(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "not now")
	}, func(o *Options) { o.Patience = time.Second })
	one := w.run(step{Body: "x"}).told(t)[0]
	require.Equal(t, http.StatusServiceUnavailable, one.Status)
	require.Equal(t, "not now", one.Body)
	w.api.Close()
	one = w.run(step{Body: "x"}).told(t)[0]
	require.Equal(t, http.StatusServiceUnavailable, one.Status)
	require.Contains(t, one.Body, "overloaded_error")
	require.NotContains(t, one.Body, realKey)
}

func TestAnswerThatBreaksOff(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, anthropicStream[:200])
		panic(http.ErrAbortHandler)
	})
	a := w.run(step{Body: "x"})
	one := a.told(t)[0]
	require.Empty(t, one.Err)
	require.Equal(t, anthropicStream[:200]+dialects["anthropic"].tail, one.Body)
}

func TestNoKey(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") }, func(o *Options) { o.Getenv = nil })
	one := w.run(step{Body: "x"}).told(t)[0]
	require.Equal(t, http.StatusUnauthorized, one.Status)
	require.Contains(t, one.Body, "set KEY in the environment of hayward serve")
}

func TestBudget(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"usage":{"input_tokens":60,"output_tokens":1}}`)
	}, func(o *Options) { o.MaxTokens = 100 })
	all := w.run(step{Body: "{}"}, step{Body: "{}"}, step{Body: "{}"}).told(t)
	require.Equal(t, []int{200, 200, 400}, []int{all[0].Status, all[1].Status, all[2].Status})
	require.Contains(t, all[2].Body, "the budget of 100 tokens is used up: 122")
}

// memory is a ledger.
type memory struct {
	mu    sync.Mutex
	calls map[string][]Call
}

func (m *memory) Append(id string, c Call) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[id] = append(m.calls[id], c)
	return nil
}

func (m *memory) Calls(id string) ([]Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[id], nil
}

// A gateway that goes away in the middle of a stream leaves its agent with the
// stream's end; without one the agent is told to come back, and a later one serves
// it with what it used before.
func TestGatewayGoesAndComes(t *testing.T) {
	ledger := &memory{calls: map[string][]Call{}}
	begun := make(chan struct{}, 1)
	release := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); string(b) == "hang" {
			stream(w, anthropicStream[:200])
			begun <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		io.WriteString(w, `{"usage":{"input_tokens":1,"output_tokens":1}}`)
	}, func(o *Options) { o.Ledger = ledger })
	t.Cleanup(func() { close(release) })
	a := w.run(step{Body: "x"}, step{Body: "hang"}, step{Body: "x"}, step{Body: "x", Until: 200})
	<-begun
	a.said(t, "line event: message_start", 1)
	w.down()
	a.said(t, "told ", 3)
	w.up()
	all := a.told(t)
	require.Len(t, all, 4)
	require.Equal(t, 200, all[1].Status)
	require.Contains(t, all[1].Body, "event: message_start")
	require.Equal(t, 503, all[2].Status)
	require.Equal(t, "2", all[2].RetryAfter)
	require.Contains(t, all[2].Body, "the coordinator is away, retry")
	require.Equal(t, 200, all[3].Status)
	require.EqualValues(t, 1+1+1, w.g.Forget(a.id).OutputTokens, "of both gateways, and what the cut stream said")
}

// An agent that leaves in the middle of an answer frees the model API.
func TestAgentLeaves(t *testing.T) {
	left := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, anthropicStream[:200])
		<-r.Context().Done()
		close(left)
	}, func(o *Options) { o.linger = 100 * time.Millisecond })
	a := w.run(step{Body: "x", Leave: true})
	a.told(t)
	select {
	case <-left:
	case <-time.After(testkit.Patience):
		t.Fatal("the model API was not told")
	}
}

// An agent that reads slowly slows the model API down instead of filling memory.
func TestBackPressure(t *testing.T) {
	const size = 24 << 20
	line := "data: " + strings.Repeat("y", 1017) + "\n"
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range size / len(line) {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	})
	one := w.run(step{Body: "x"}).told(t)[0]
	require.Equal(t, size/len(line)*len(line), one.Bytes)
}

func TestManyAgents(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		stream(w, "data: "+string(b)+"\n\n")
	})
	agents := make([]agentRun, 8)
	for i := range agents {
		agents[i] = w.run(step{Body: fmt.Sprint(i)}, step{Body: fmt.Sprint(i)})
	}
	for i, a := range agents {
		for _, one := range a.told(t) {
			require.Equal(t, fmt.Sprintf("data: %d\n\n", i), one.Body)
		}
	}
}
