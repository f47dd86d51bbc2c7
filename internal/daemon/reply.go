package daemon

import (
	"strings"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/crashpoint"
)

// The headers of a service error (the NATS services convention, ADR-32).
const (
	headerError     = "Nats-Service-Error"
	headerErrorCode = "Nats-Service-Error-Code"
)

// replier publishes answers to reply subjects. It sets the service-error
// headers itself: micro's Respond and Error must not be called after the handler
// returned.
type replier struct {
	nc  *nats.Conn
	log *zap.Logger
}

// to returns the responder for a client's request. Without a reply subject it is
// carried out and answered to nobody; one that no client may receive on is
// refused, or a request could make us write where its sender may not.
func (r replier) to(subject string) (responder, bool) {
	return responder{replier: r, subject: subject}, subject == "" || bus.ReplyAllowed(bus.ClientUser, subject)
}

type responder struct {
	replier
	subject string
	// asked counts the answer.
	asked *asked
	// ackSubject is where who asked acknowledges a token; nil for clients.
	ackSubject func(token string) string
}

// Answer implements [coordinator.Responder].
func (r responder) Answer(a coordinator.Answer) {
	r.asked.answered(a)
	if r.subject == "" {
		return
	}
	msg := nats.NewMsg(r.subject)
	if a.Error == nil {
		body, err := events.Marshal(a.Reply)
		if err == nil {
			msg.Data = body
			if a.AckToken != "" {
				msg.Header.Set(events.HeaderAck, r.acknowledgedAt(a.AckToken))
			}
			r.publish(msg)
			return
		}
		// What cannot be sent becomes an error reply, never nothing.
		a.Error = events.AsError(err)
	}
	msg.Header.Set(headerError, oneLine(a.Error.Error()))
	msg.Header.Set(headerErrorCode, string(a.Error.Code))
	body, err := events.Marshal(a.Error)
	if err != nil {
		r.log.Error("error reply not encoded", zap.Error(err))
	}
	msg.Data = body
	r.publish(msg)
}

func (r responder) acknowledgedAt(token string) string {
	if r.ackSubject != nil {
		return r.ackSubject(token)
	}
	return events.AckPrefix + "." + token
}

func (r responder) publish(msg *nats.Msg) {
	if err := r.nc.PublishMsg(msg); err != nil {
		r.log.Error("reply not published", zap.String("subject", r.subject), zap.Error(err))
	}
	crashpoint.Hit(crashpoint.AnswerSent)
}

// fail answers with an error.
func (r responder) fail(err *events.Error) { r.Answer(coordinator.Answer{Error: err}) }

// oneLine makes text fit for a header.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == '\r' || c == '\n' {
			return ' '
		}
		return c
	}, s)
	if len(s) > 1024 {
		s = strings.ToValidUTF8(s[:1024], "")
	}
	return s
}
