package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

// SocketName is the children's socket in its directory.
const SocketName = "bus.sock"

// acceptRetry is the pause after an accept that failed for want of descriptors.
const acceptRetry = 100 * time.Millisecond

// listener is one unix socket.
type listener struct {
	kind  socketKind
	name  string // its path
	unix  *net.UnixListener
	close func() error // stops it and removes the socket; called once
	// slots bounds the connections that have not authenticated yet. When all are
	// taken nothing is accepted until one does or runs into its deadline.
	slots chan struct{}
}

// ServeChildren opens the children's socket, [SocketName] in dir. dir is made if
// it is missing and kept as it is otherwise, because children hold a descriptor
// of it across restarts; a socket that an earlier server left is replaced.
func (s *Server) ServeChildren(dir string) error {
	return s.serve(childSocket, filepath.Join(dir, SocketName))
}

// ServeClients opens the clients' socket. Its directory is made if it is
// missing; the path may be longer than a socket address.
func (s *Server) ServeClients(socket string) error {
	return s.serve(clientSocket, socket)
}

func (s *Server) serve(kind socketKind, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return fmt.Errorf("open the %s' socket: %w", kind, net.ErrClosed)
	}
	l, err := listenUnix(path)
	if err != nil {
		return fmt.Errorf("open the %s' socket %s: %w", kind, path, err)
	}
	l.kind, l.name, l.slots = kind, path, make(chan struct{}, inFlight)
	s.sockets = append(s.sockets, l)
	s.tasks.Go(func() { s.acceptLoop(l) })
	return nil
}

func (s *Server) acceptLoop(l *listener) {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		conn, err := l.unix.AcceptUnix()
		if err != nil {
			<-l.slots
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			s.log.Error("accept a connection", zap.String("socket", l.name), zap.Error(err))
			if !pause(s.ctx, acceptRetry) {
				return
			}
			continue
		}
		s.tasks.Go(func() { s.admit(l, conn) })
	}
}

// admit checks who connected and joins it to the server.
func (s *Server) admit(l *listener, conn *net.UnixConn) {
	free := func() { <-l.slots }
	if err := checkPeer(conn); err != nil {
		free()
		s.log.Warn("refuse a connection", zap.String("socket", l.name), zap.Error(err))
		if err := conn.Close(); err != nil {
			s.log.Debug("close a refused connection", zap.Error(err))
		}
		return
	}
	if err := s.join(s.ctx, l.kind, conn, free); err != nil && s.ctx.Err() == nil {
		s.log.Warn("serve a connection", zap.String("socket", l.name), zap.Error(err))
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
