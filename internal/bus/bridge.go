package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/hayward-dev/hayward/events"
)

// socketKind says which socket a connection came in on.
type socketKind int

const (
	childSocket socketKind = iota
	clientSocket
)

func (k socketKind) String() string {
	if k == childSocket {
		return "children"
	}
	return "clients"
}

const (
	// maxInfo bounds the server's first line.
	maxInfo = 32 << 10
	// lingerTime is how long a peer may take to read the server's last words once
	// the server has closed.
	lingerTime = time.Second
)

// bridge is one connection on a unix socket, joined to an in-process connection
// of the server.
type bridge struct {
	socket socketKind
	peer   *net.UnixConn
	server net.Conn // our end of the server's pipe
	cid    uint64   // the server's number for the connection
	bucket *rate.Limiter
	slow   time.Duration
	// authenticated tells the listener, once, that it counts no longer as in flight.
	authenticated func()

	// child is the id that it authenticated as, inside tells that a program inside
	// the child did. Guarded by access.mu.
	child  string
	inside bool

	cut context.CancelFunc // ends the bridge from anywhere
	// serving ends with the bridge, or before it when the server closed.
	serving context.Context
	closed  context.CancelFunc
}

// join connects peer to the server and copies until either side ends or ctx
// does. It owns peer.
func (s *Server) join(ctx context.Context, kind socketKind, peer *net.UnixConn, authenticated func()) error {
	authenticated = sync.OnceFunc(authenticated)
	defer authenticated()
	server, err := s.nats.InProcessConn()
	if err != nil {
		return errors.Join(fmt.Errorf("join the server: %w", err), peer.Close())
	}
	b := &bridge{socket: kind, peer: peer, server: server, slow: s.opts.WriteDeadline, authenticated: authenticated}
	if kind == childSocket {
		b.bucket = rate.NewLimiter(rate.Limit(s.opts.ChildRate), s.opts.ChildBurst)
	}
	ctx, b.cut = context.WithCancel(ctx)
	b.serving, b.closed = context.WithCancel(ctx)
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		// Both are closed exactly here; what they still had to say is lost either way.
		if err := errors.Join(peer.Close(), server.Close()); err != nil {
			s.log.Debug("close bridge", zap.Error(err))
		}
	})
	defer func() {
		b.cut()
		<-ended
	}()

	info, err := b.greeting()
	if err != nil {
		return fmt.Errorf("join the server: %w", err)
	}
	s.access.open(b)
	defer s.access.close(b)

	done := make(chan struct{})
	go func() {
		defer close(done)
		b.down(info)
	}()
	b.up()
	b.cut()
	<-done
	return nil
}

// greeting reads the server's first line, which says what the server calls the
// connection. Nothing of the peer is read before that is known.
func (b *bridge) greeting() ([]byte, error) {
	if err := b.server.SetReadDeadline(time.Now().Add(authTimeout)); err != nil {
		return nil, err
	}
	var line []byte
	buf := make([]byte, 4<<10)
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		if len(line) > maxInfo {
			return nil, errors.New("its greeting does not end")
		}
		n, err := b.server.Read(buf)
		if err != nil {
			return nil, err
		}
		line = append(line, buf[:n]...)
	}
	body, ok := bytes.CutPrefix(line, []byte("INFO "))
	if !ok {
		return nil, errors.New("it does not greet")
	}
	var info struct {
		ClientID uint64 `json:"client_id"`
	}
	if err := events.DecodeRecord(bytes.TrimSpace(body), &info); err != nil {
		return nil, err
	}
	if info.ClientID == 0 {
		return nil, errors.New("its greeting has no client_id")
	}
	b.cid = info.ClientID
	return line, b.server.SetReadDeadline(time.Time{})
}

// up copies from the peer to the server, through the bucket, and returns once
// the peer has closed and the server has processed all that came. While the
// bucket is empty nothing is read, so the peer blocks in its own write. What
// comes after the server closed is thrown away: a peer that is refused is still
// writing, and would see its write fail instead of the reason.
func (b *bridge) up() {
	limit := copyBuffer
	if b.bucket != nil {
		limit = min(limit, b.bucket.Burst())
	}
	w := newWindow(limit)
	defer w.release()
	refused := false
	for n := 0; ; {
		buf := w.next(n)
		var err error
		n, err = b.peer.Read(buf)
		if n > 0 && !refused {
			refused = b.forward(buf[:n]) != nil
		}
		if err != nil {
			b.settle()
			return
		}
	}
}

func (b *bridge) forward(chunk []byte) error {
	if b.bucket != nil {
		if err := b.bucket.WaitN(b.serving, len(chunk)); err != nil {
			return err
		}
	}
	_, err := b.server.Write(chunk)
	return err
}

// settle waits until the server has processed all that was written. Its end is a
// [net.Pipe], where an empty write returns once the other side reads, and the
// server reads again only after it handled what it had.
func (b *bridge) settle() {
	if b.server.SetWriteDeadline(time.Now().Add(b.slow)) == nil {
		// An error means that the server closed the connection: it is settled too.
		_, _ = b.server.Write(nil)
	}
}

// down copies from the server to the peer until the server closes, and lets the
// peer read the last of it. A peer that does not read blocks it; then the server
// runs into its own deadline, says so in its log and closes the pipe, and the
// longer deadline here ends the blocked write. A peer that is gone may have left
// something for up to read, so what is meant for it is thrown away until then.
func (b *bridge) down(first []byte) {
	w := newWindow(copyBuffer)
	defer w.release()
	gone := false
	for chunk := first; ; {
		if !gone {
			err := b.peer.SetWriteDeadline(time.Now().Add(2 * b.slow))
			if err == nil {
				_, err = b.peer.Write(chunk)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				b.cut()
				return
			}
			gone = err != nil
		}
		buf := w.next(len(chunk))
		n, err := b.server.Read(buf)
		if err != nil {
			break
		}
		chunk = buf[:n]
	}
	b.closed()
	// From here on up only waits for the peer's end of file.
	if b.peer.CloseWrite() != nil || b.peer.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		b.cut()
	}
}
