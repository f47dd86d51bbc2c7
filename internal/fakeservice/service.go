// Package fakeservice stands in for a coordinator in tests of its clients: a
// real NATS server behind a real unix socket, whose endpoints a test answers as
// it likes, or leaves to the small [Coordinator].
//
// A connection can be cut and the server ended and started again, so a test can
// lose any reply. What a handler was asked before stays asked.
package fakeservice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hayward-dev/hayward/events"
)

const (
	token        = "client-token-of-a-test"
	serviceUser  = "service"
	serviceToken = "service-token-of-a-test"
	startTimeout = 20 * time.Second
)

// Handler answers a request, or does not. Each runs on a goroutine of its own.
type Handler func(*Request)

// Service is the server with its socket.
type Service struct {
	// Socket and TokenFile are what a client is told.
	Socket    string
	TokenFile string

	mu       sync.Mutex
	handlers map[string]Handler
	ns       *server.Server
	nc       *nats.Conn
	listener net.Listener
	conns    map[net.Conn]struct{}
	running  sync.WaitGroup
	acks     chan string
	ctx      context.Context
	cancel   context.CancelFunc
}

// Start serves in dir.
func Start(dir string) (*Service, error) {
	return StartAt(filepath.Join(dir, "bus.sock"), filepath.Join(dir, "client.token"))
}

// StartAt serves on a socket, with its token in a file.
func StartAt(socket, tokenFile string) (*Service, error) {
	s := &Service{
		Socket: socket, TokenFile: tokenFile,
		handlers: make(map[string]Handler),
		conns:    make(map[net.Conn]struct{}),
		acks:     make(chan string, 1024),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := os.WriteFile(tokenFile, []byte(token+"\n"), 0o600); err != nil {
		return nil, err
	}
	s.handlers[events.AckPrefix+".>"] = func(r *Request) { s.acks <- r.Subject }
	return s, s.Up()
}

// Up starts the server, if it is down.
func (s *Service) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ns != nil {
		return nil
	}
	ns, err := server.NewServer(&server.Options{
		DontListen: true, NoSigs: true, NoLog: true, MaxPayload: events.MaxPayload,
		Users: []*server.User{
			{Username: "client", Password: token, Permissions: clientPermissions()},
			{Username: serviceUser, Password: serviceToken},
		},
	})
	if err != nil {
		return err
	}
	ns.Start()
	if !ns.ReadyForConnections(startTimeout) {
		return errors.New("the NATS server is not ready")
	}
	s.ns = ns
	s.nc, err = nats.Connect("nats://127.0.0.1:4222", nats.InProcessServer(ns), nats.UserInfo(serviceUser, serviceToken))
	if err != nil {
		return err
	}
	for subject := range s.handlers {
		if err := s.subscribe(subject); err != nil {
			return err
		}
	}
	if err := s.nc.Flush(); err != nil {
		return err
	}
	if err := os.Remove(s.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.listener, err = net.Listen("unix", s.Socket)
	if err != nil {
		return err
	}
	listener := s.listener
	s.running.Go(func() { s.accept(listener, ns) })
	return nil
}

// clientPermissions are those a coordinator gives its clients.
func clientPermissions() *server.Permissions {
	publish := []string{events.FilesSubject(">"), events.AdminSubject(">"), events.AckPrefix + ".>"}
	for _, k := range events.Kinds {
		publish = append(publish, events.RequestSubject(k))
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: []string{events.FeedSubjects, events.ClientInboxPrefix + ".>"}},
	}
}

func (s *Service) accept(l net.Listener, ns *server.Server) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		inner, err := ns.InProcessConn()
		if err != nil {
			conn.Close()
			return
		}
		s.mu.Lock()
		s.conns[conn] = struct{}{}
		s.mu.Unlock()
		// Either end closes the other, and both copies end. This goroutine is one of
		// running, so the count is not zero.
		s.running.Go(func() {
			io.Copy(inner, conn)
			inner.Close()
		})
		s.running.Go(func() {
			io.Copy(conn, inner)
			conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

// Break cuts every client's connection. They may come back at once.
func (s *Service) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		conn.Close()
	}
}

// Down ends the server: nobody listens until [Service.Up].
func (s *Service) Down() {
	s.mu.Lock()
	ns, nc, listener := s.ns, s.nc, s.listener
	s.ns, s.nc, s.listener = nil, nil, nil
	s.mu.Unlock()
	if ns == nil {
		return
	}
	if listener != nil {
		listener.Close()
	}
	s.Break()
	nc.Close()
	ns.Shutdown()
	ns.WaitForShutdown()
}

// Close ends everything, handlers too, and waits for it.
func (s *Service) Close() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.Down()
	s.running.Wait()
}

// Context ends with the service.
func (s *Service) Context() context.Context { return s.ctx }

// Handle answers subject with h from now on.
func (s *Service) Handle(subject string, h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.handlers[subject]
	s.handlers[subject] = h
	if known || s.nc == nil {
		return
	}
	if err := s.subscribe(subject); err != nil {
		panic(fmt.Sprintf("fakeservice: subscribe to %s: %v", subject, err))
	}
	if err := s.nc.Flush(); err != nil {
		panic(fmt.Sprintf("fakeservice: flush: %v", err))
	}
}

// subscribe needs mu.
func (s *Service) subscribe(subject string) error {
	_, err := s.nc.Subscribe(subject, func(msg *nats.Msg) {
		s.mu.Lock()
		h := s.handlers[subject]
		s.mu.Unlock()
		s.goRun(func() { h(&Request{Subject: msg.Subject, Data: msg.Data, s: s, reply: msg.Reply}) })
	})
	return err
}

// goRun runs f unless the service is being closed.
func (s *Service) goRun(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.running.Go(f)
	}
}

// Publish sends an event of the feed.
func (s *Service) Publish(e events.FeedEvent) {
	s.publish(&nats.Msg{Subject: events.FeedSubject(e.SubagentID, e.State), Data: encode(e)})
}

// publish sends a message, or loses it while the server is down, as a
// coordinator that was killed would.
func (s *Service) publish(msg *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nc != nil {
		_ = s.nc.PublishMsg(msg)
	}
}

// Ack returns the subject of the next acknowledgement.
func (s *Service) Ack(ctx context.Context) (string, error) {
	select {
	case subject := <-s.acks:
		return subject, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Acks is how many acknowledgements came that Ack has not returned.
func (s *Service) Acks() int { return len(s.acks) }

// Request is one message to a handler.
type Request struct {
	Subject string
	Data    []byte
	s       *Service
	reply   string
}

// Decode reads the body as strictly as a coordinator does.
func (r *Request) Decode(v any) *events.Error { return events.DecodeStrict(r.Data, v) }

// Reply answers.
func (r *Request) Reply(v any) { r.s.publish(&nats.Msg{Subject: r.reply, Data: encode(v)}) }

// ReplyAck answers and wants an acknowledgement with the token.
func (r *Request) ReplyAck(v any, token string) {
	header := nats.Header{events.HeaderAck: []string{events.AckPrefix + "." + token}}
	r.s.publish(&nats.Msg{Subject: r.reply, Data: encode(v), Header: header})
}

// Refuse answers with an error.
func (r *Request) Refuse(e *events.Error) {
	header := nats.Header{}
	header.Set(micro.ErrorHeader, e.Message)
	header.Set(micro.ErrorCodeHeader, string(e.Code))
	r.s.publish(&nats.Msg{Subject: r.reply, Data: encode(e), Header: header})
}

func encode(v any) []byte {
	b, err := events.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakeservice: %v", err))
	}
	return b
}
