package gateway

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

// hopHeaders belong to one connection and are not forwarded.
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// exchange is one request of an agent.
type exchange struct {
	g        *Gateway
	child    string
	conn     *conn
	upstream Upstream
	dialect  dialect
	call     Call
	begun    time.Time
	w        http.ResponseWriter

	// path is the request's, ask what its body says and size its bytes; billed tells
	// that its answer uses something.
	path   string
	ask    ask
	size   int64
	billed bool

	// upstreamCtx is what the model API is asked with. It outlives the agent's leaving
	// for a while; stop ends it.
	upstreamCtx context.Context
	stop        context.CancelFunc
	// left: the agent has left, and the answer is read on. Guarded by costs.mu.
	left bool
}

func (g *Gateway) handle(w http.ResponseWriter, r *http.Request) {
	k := r.Context().Value(connOf{}).(*conn)
	x := &exchange{g: g, child: k.key.child, conn: k, begun: time.Now(), w: w, dialect: dialects["anthropic"]}
	name, rest, _ := strings.Cut(strings.TrimPrefix(path.Clean(r.URL.Path), "/"), "/")
	x.call.Upstream, x.path = name, "/"+rest
	x.upstreamCtx, x.stop = context.WithCancel(context.WithoutCancel(r.Context()))
	defer x.stop()
	defer g.costs.begin(x)()
	if err := x.find(name, r.Method, x.path); err != nil {
		x.refuse(http.StatusNotFound, "not_found_error", err.Error())
		return
	}
	if !g.admits(x.child, x.dialect.presented(r.Header)) {
		x.refuse(http.StatusUnauthorized, "authentication_error", "the credential is not that of this subagent")
		return
	}
	key, err := x.upstream.Key(g.opts.Getenv)
	if err != nil {
		x.refuse(http.StatusUnauthorized, "authentication_error", err.Error())
		return
	}
	if err := g.enter(k.ctx, x.child); err != nil {
		x.refuse(http.StatusServiceUnavailable, "overloaded_error", err.Error())
		return
	}
	if over := g.spent(x.child); over != "" {
		x.refuse(http.StatusBadRequest, "invalid_request_error", over)
		return
	}
	body, done, ok := x.read(r)
	defer done()
	if !ok {
		return
	}
	body, refused := x.prepare(r.Method, body)
	if refused != nil {
		x.refuse(http.StatusBadRequest, "invalid_request_error", refused.Error())
		return
	}
	target, err := x.upstream.target(x.path, r.URL.RawQuery)
	if err != nil {
		x.refuse(http.StatusInternalServerError, "api_error", err.Error())
		return
	}
	out := r.Clone(r.Context())
	out.URL, out.Host, out.RequestURI, out.Close = target, target.Host, "", false
	for _, name := range append(hopHeaders, strings.Split(r.Header.Get("Connection"), ",")...) {
		out.Header.Del(strings.TrimSpace(name))
	}
	// Compression would hide the usage; the transport adds its own and takes it off.
	out.Header.Del("Accept-Encoding")
	x.dialect.authorize(out.Header, key)
	x.forward(out, body)
}

// find chooses the upstream.
func (x *exchange) find(name, method, p string) error {
	for _, u := range x.g.opts.Upstreams {
		if u.Name != name {
			continue
		}
		x.upstream, x.dialect = u, dialects[name]
		if x.dialect.allows(method, p) {
			return nil
		}
		return fmt.Errorf("%s %s is not forwarded to %s", method, p, name)
	}
	return fmt.Errorf("there is no model API %q", name)
}

// admits compares a credential with those of the subagent's runs. Which run it is
// stands in it.
func (g *Gateway) admits(id, presented string) bool {
	rest, ok := strings.CutPrefix(presented, "hayward-")
	number, _, found := strings.Cut(rest, "-")
	run, err := strconv.Atoi(number)
	if !ok || !found || err != nil {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(presented), []byte(g.Credential(id, run))) == 1
}

// forward sends the request until there is an answer to be given, and gives it.
func (x *exchange) forward(r *http.Request, body []byte) {
	ctx, cancel := context.WithTimeout(r.Context(), x.g.opts.Patience)
	defer cancel()
	defer x.linger(r.Context())()
	defer func() {
		x.call.DurationMS = time.Since(x.begun).Milliseconds()
		if x.call.Status != 0 || x.call.Unknown {
			x.assume()
			x.g.price(&x.call)
			x.g.spend(x.child, x.call)
			x.g.count(x.child, x.call)
		}
		x.g.log.Debug("model call", zap.String("id", x.child), zap.Any("call", x.call))
	}()
	held := x.g.holds[x.upstream.Name]
	for {
		if err := held.wait(ctx); err != nil {
			x.late(err)
			return
		}
		x.call.Attempts++
		// The answer may stream for longer than the attempts may take.
		attempt := r.Clone(x.upstreamCtx)
		attempt.Body, attempt.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer, err := x.g.client.Do(attempt)
		if r.Context().Err() != nil { // the agent left
			if err == nil {
				x.give(r.Context(), answer)
				return
			}
			// It was asked, and may charge for it.
			x.call.Cut, x.call.Unknown = true, x.billed
			return
		}
		status, header := 0, http.Header{}
		if err == nil {
			status, header = answer.StatusCode, answer.Header
			if !again(status) {
				x.give(r.Context(), answer)
				return
			}
		}
		d, shared := pause(x.call.Attempts, status, header, time.Now())
		if deadline, _ := ctx.Deadline(); time.Until(deadline) <= d {
			if err == nil {
				x.give(r.Context(), answer)
				return
			}
			x.late(err)
			return
		}
		if err == nil {
			answer.Body.Close()
		}
		x.g.log.Info("model call is tried again", zap.String("id", x.child), zap.String("upstream", x.upstream.Name), zap.Int("status", status), zap.Duration("in", d), zap.Bool("for_all", shared), zap.Error(err))
		if shared {
			held.extend(time.Now().Add(d))
			continue
		}
		own := hold{until: time.Now().Add(d)}
		if err := own.wait(ctx); err != nil {
			x.late(err)
			return
		}
	}
}

// late answers for an upstream that could not be had.
func (x *exchange) late(err error) {
	if errors.Is(err, context.Canceled) {
		return // the agent left
	}
	x.refuse(http.StatusServiceUnavailable, "overloaded_error", fmt.Sprintf("%s cannot be had: %v", x.upstream.Name, err))
}

// refuse answers in the gateway's own name.
func (x *exchange) refuse(status int, kind, message string) {
	x.call.Status = status
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	// The agent may be gone.
	_, _ = io.WriteString(x.w, x.dialect.failure(kind, message))
}
