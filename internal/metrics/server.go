package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"
)

// requestTimeout bounds each step of a request; readers are few and quick.
const requestTimeout = 10 * time.Second

// Server answers GET /metrics.
type Server struct {
	http *http.Server
	addr string
	done chan struct{}
}

// Listen opens the listener of an address: "HOST:PORT", where an empty HOST is
// the loopback address, or "unix:PATH", a socket for this user alone.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var c net.ListenConfig
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("%q is neither HOST:PORT nor unix:PATH: %w", address, err)
		}
		if host == "" {
			host = "127.0.0.1"
		}
		return c.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	}
	// A socket that an earlier process left is in the way; one that answers is not.
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() == os.ModeSocket {
		var d net.Dialer
		if conn, err := d.DialContext(ctx, "unix", path); err == nil {
			conn.Close()
			return nil, fmt.Errorf("%s: another process listens there", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := c.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Serve begins to answer on l. Close the server.
func Serve(l net.Listener, r *Registry, log *zap.Logger) *Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ContentType)
		if err := r.Write(w); err != nil {
			log.Debug("metrics not written", zap.Error(err)) // the reader left
		}
	})
	s := &Server{addr: l.Addr().String(), done: make(chan struct{}), http: &http.Server{
		Handler: mux, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: zap.NewStdLog(log),
	}}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are not served any more", zap.Error(err))
		}
	}()
	return s
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.addr }

// Close cuts what is being read and waits.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}
