package bus

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/dial"
)

// benchServer runs a server with a responder that answers like a service.
func benchServer(b *testing.B) (s *Server, core *nats.Conn, socket string) {
	dir, err := os.MkdirTemp("", "hayward-bench-")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, os.RemoveAll(dir)) })
	s, err = Start(b.Context(), Options{StoreDir: filepath.Join(dir, "store")})
	require.NoError(b, err)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		require.NoError(b, s.Shutdown(ctx))
	})
	s.SetClientToken("token")
	socket = filepath.Join(dir, "run", "bus.sock")
	require.NoError(b, s.ServeClients(socket))
	core, err = s.Conn("bench")
	require.NoError(b, err)
	b.Cleanup(core.Close)
	_, err = core.Subscribe(events.RequestSubject(events.KindQuery), func(m *nats.Msg) {
		if err := m.Respond(m.Data); err != nil {
			b.Error(err)
		}
	})
	require.NoError(b, err)
	require.NoError(b, core.Flush())
	return s, core, socket
}

func request(b *testing.B, nc *nats.Conn) {
	body := make([]byte, 512)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Request(events.RequestSubject(events.KindQuery), body, deadline); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRequestInProcess is the round trip without a socket.
func BenchmarkRequestInProcess(b *testing.B) {
	_, core, _ := benchServer(b)
	request(b, core)
}

// BenchmarkRequestClient is the round trip of a client over the unix socket.
func BenchmarkRequestClient(b *testing.B) {
	_, _, socket := benchServer(b)
	url, opts := dial.Options(socket, ClientUser, "token", events.ClientInboxPrefix)
	nc, err := nats.Connect(url, opts...)
	require.NoError(b, err)
	b.Cleanup(nc.Close)
	request(b, nc)
}

// BenchmarkPut is one write of a record of usual size.
func BenchmarkPut(b *testing.B) {
	_, core, _ := benchServer(b)
	js, err := jetstream.New(core)
	require.NoError(b, err)
	kv, err := js.CreateKeyValue(b.Context(), jetstream.KeyValueConfig{Bucket: events.Bucket, Storage: jetstream.FileStorage})
	require.NoError(b, err)
	body := make([]byte, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := kv.Put(b.Context(), "018f0000-0000-7000-8000-00000000000a", body); err != nil {
			b.Fatal(err)
		}
	}
}
