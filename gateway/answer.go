package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// An agent that leaves does not end what it asked: the model API charges for it, and
// says only at the end how much. So its answer is read on, for a while.
const (
	// lingerBound is how long, and maxLinger how much.
	lingerBound = 20 * time.Second
	maxLinger   = 16 << 20
	// maxLingering bounds the answers of one subagent that are read on.
	maxLingering = 16
)

// linger lets the exchange go on for a while after its agent has left. The caller
// calls done before it returns.
func (x *exchange) linger(agent context.Context) (done func() bool) {
	return context.AfterFunc(agent, func() {
		defer x.stop()
		if x.conn.carrier.ctx.Err() != nil || !x.g.costs.mayLinger(x) {
			return
		}
		timer := time.NewTimer(x.g.opts.linger)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-x.upstreamCtx.Done(): // the exchange is over
		}
	})
}

var errAgentLeft = errors.New("the agent left")

// give passes an answer on as it comes, and reads it on if the agent leaves.
func (x *exchange) give(agent context.Context, answer *http.Response) {
	defer answer.Body.Close()
	x.call.Status = answer.StatusCode
	m := newMeter(x.dialect.read(), answer.Header.Get("Content-Type"))
	from := io.TeeReader(answer.Body, m)
	err := errAgentLeft
	if agent.Err() == nil {
		err = x.pass(answer, m.stream, from)
	}
	left := errors.Is(err, errAgentLeft) || agent.Err() != nil
	if left {
		x.readOn(from, m)
	}
	x.call.Model, x.call.Usage = m.finish()
	x.call.Unknown = x.billed && answer.StatusCode/100 == 2 && !m.complete()
	if err == nil {
		return
	}
	x.call.Cut = true
	if !m.stream || left {
		panic(http.ErrAbortHandler) // the server closes the connection
	}
	_, _ = io.WriteString(x.w, x.dialect.tail)
}

// pass gives the agent an answer.
func (x *exchange) pass(answer *http.Response, stream bool, from io.Reader) error {
	h := x.w.Header()
	for name, values := range answer.Header {
		h[name] = values
	}
	for _, name := range append(hopHeaders, "Set-Cookie") {
		h.Del(name)
	}
	if stream {
		// A stream ends with its connection, so that the child can end it in this
		// process's place.
		h.Set("Transfer-Encoding", "identity")
		h.Del("Content-Length")
		if err := x.conn.tail([]byte(x.dialect.tail)); err != nil {
			return errAgentLeft
		}
	}
	x.w.WriteHeader(answer.StatusCode)
	return x.copy(from)
}

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

// readOn reads until the answer has said what it used. What fails is that it does
// not, which the meter knows.
func (x *exchange) readOn(from io.Reader, m *meter) {
	// Nobody may have seen the agent leave but the write that failed.
	defer time.AfterFunc(x.g.opts.linger, x.stop).Stop()
	buf := make([]byte, 32<<10)
	for left := maxLinger; left > 0 && !m.complete(); {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		left -= n
	}
}

// assume fills in what a call whose answer does not say it may have used, so that
// budgets hold all the same.
func (x *exchange) assume() {
	c := &x.call
	if c.Model == "" {
		c.Model = latest("", x.ask.Model)
	}
	if !c.Unknown || !x.g.budgeted() {
		return
	}
	if read := c.Usage.Less(events.Usage{OutputTokens: c.Usage.OutputTokens}); read.Total() == 0 {
		c.Usage.InputTokens = x.size / bytesPerToken
	}
	c.Usage.OutputTokens = max(c.Usage.OutputTokens, x.ask.most(x.path))
}
