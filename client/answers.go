package client

import (
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
)

// answers hands replies to the requests that wait for them. All share one
// subscription, made with the first and ended with the connection: one for each
// request cost a query a third of its time.
type answers struct {
	mu      sync.Mutex
	prefix  string                    // guarded by mu; empty before the subscription
	last    uint64                    // guarded by mu
	waiting map[string]chan *nats.Msg // guarded by mu; by reply subject
}

// expect returns a reply subject, where its first message arrives, and what ends
// the wait.
func (a *answers) expect(nc *nats.Conn) (inbox string, replies <-chan *nats.Msg, stop func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.prefix == "" {
		prefix := nc.NewInbox()
		if _, err := nc.Subscribe(prefix+".*", a.take); err != nil {
			return "", nil, nil, err
		}
		a.prefix, a.waiting = prefix, make(map[string]chan *nats.Msg)
	}
	a.last++
	inbox = a.prefix + "." + strconv.FormatUint(a.last, 36)
	ch := make(chan *nats.Msg, 1)
	a.waiting[inbox] = ch
	return inbox, ch, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, inbox)
	}, nil
}

// take hands over a reply; what nobody waits for any more goes nowhere.
func (a *answers) take(m *nats.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ch, wanted := a.waiting[m.Subject]; wanted {
		delete(a.waiting, m.Subject)
		ch <- m
	}
}

// alone subscribes to the reply of one request. The coordinator sees when nobody
// is subscribed any more, which for a spawn that is waited for means that its
// caller is gone.
func alone(nc *nats.Conn) (inbox string, replies <-chan *nats.Msg, stop func(), err error) {
	ch := make(chan *nats.Msg, 1)
	inbox = nc.NewInbox()
	sub, err := nc.ChanSubscribe(inbox, ch)
	if err != nil {
		return "", nil, nil, err
	}
	// It fails only when the connection is closed, and then it is gone anyway.
	return inbox, ch, func() { _ = sub.Unsubscribe() }, nil
}
