package bus

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/dial"
)

// BenchmarkRequest is a client's round trip through its socket and the bridge.
func BenchmarkRequest(b *testing.B) {
	ctx, dir := b.Context(), b.TempDir()
	s, err := Start(ctx, Options{StoreDir: filepath.Join(dir, "store")})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Shutdown(context.Background())) })
	run, err := os.MkdirTemp("", "hayward-bus-")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, os.RemoveAll(run)) })
	socket := filepath.Join(run, SocketName)
	s.SetClientToken("secret")
	require.NoError(b, s.ServeClients(socket))
	core, err := s.Conn("core")
	require.NoError(b, err)
	subject := events.RequestSubject(events.KindQuery)
	_, err = core.Subscribe(subject, func(m *nats.Msg) {
		if err := m.Respond(m.Data); err != nil {
			b.Error(err)
		}
	})
	require.NoError(b, err)
	require.NoError(b, core.Flush())
	url, opts := dial.Options(socket, ClientUser, "secret", events.ClientInboxPrefix)
	nc, err := nats.Connect(url, opts...)
	require.NoError(b, err)
	defer nc.Close()
	body := make([]byte, 200)
	for b.Loop() {
		if _, err := nc.Request(subject, body, deadline); err != nil {
			b.Fatal(err)
		}
	}
}
