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

// maxRequest bounds the body of a request, which is kept to be sent again.
const maxRequest = 64 << 20

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
}

func (g *Gateway) handle(w http.ResponseWriter, r *http.Request) {
	k := r.Context().Value(connOf{}).(*conn)
	x := &exchange{g: g, child: k.key.child, conn: k, begun: time.Now(), w: w, dialect: dialects["anthropic"]}
	name, rest, _ := strings.Cut(strings.TrimPrefix(path.Clean(r.URL.Path), "/"), "/")
	x.call.Upstream = name
	defer g.costs.begin(x.child)()
	if err := x.find(name, r.Method, "/"+rest); err != nil {
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
	if err := g.enter(x.child); err != nil {
		x.refuse(http.StatusServiceUnavailable, "overloaded_error", err.Error())
		return
	}
	if over := g.spent(x.child); over != "" {
		x.refuse(http.StatusBadRequest, "invalid_request_error", over)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		x.refuse(http.StatusRequestEntityTooLarge, "request_too_large", err.Error())
		return
	}
	if over := g.overCost(x.child, body); over != "" {
		x.refuse(http.StatusBadRequest, "invalid_request_error", over)
		return
	}
	target, err := x.upstream.target("/"+rest, r.URL.RawQuery)
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
	defer func() {
		x.call.DurationMS = time.Since(x.begun).Milliseconds()
		if x.call.Status != 0 {
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
		attempt := r.Clone(r.Context())
		attempt.Body, attempt.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer, err := x.g.client.Do(attempt)
		if r.Context().Err() != nil { // the agent left
			if err == nil {
				answer.Body.Close()
			}
			return
		}
		status, header := 0, http.Header{}
		if err == nil {
			status, header = answer.StatusCode, answer.Header
			if !again(status) {
				x.give(answer)
				return
			}
		}
		d, shared := pause(x.call.Attempts, status, header, time.Now())
		if deadline, _ := ctx.Deadline(); time.Until(deadline) <= d {
			if err == nil {
				x.give(answer)
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

// give passes an answer on as it comes.
func (x *exchange) give(answer *http.Response) {
	defer answer.Body.Close()
	x.call.Status = answer.StatusCode
	h := x.w.Header()
	for name, values := range answer.Header {
		h[name] = values
	}
	for _, name := range append(hopHeaders, "Set-Cookie") {
		h.Del(name)
	}
	m := newMeter(x.dialect.read(), answer.Header.Get("Content-Type"))
	if m.stream {
		// A stream ends with its connection, so that the child can end it in this
		// process's place.
		h.Set("Transfer-Encoding", "identity")
		h.Del("Content-Length")
		if err := x.conn.tail([]byte(x.dialect.tail)); err != nil {
			return
		}
	}
	x.w.WriteHeader(answer.StatusCode)
	err := x.copy(io.TeeReader(answer.Body, m))
	x.call.Model, x.call.Usage = m.finish()
	x.g.price(&x.call)
	if err == nil {
		return
	}
	x.call.Cut = true
	if !m.stream || errors.Is(err, errAgentLeft) {
		panic(http.ErrAbortHandler) // the server closes the connection
	}
	_, _ = io.WriteString(x.w, x.dialect.tail)
}

var errAgentLeft = errors.New("the agent left")

// copy gives each part at once.
func (x *exchange) copy(from io.Reader) error {
	flush := http.NewResponseController(x.w)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := x.w.Write(buf[:n]); err != nil {
				return errAgentLeft
			}
			if err := flush.Flush(); err != nil {
				return errAgentLeft
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
