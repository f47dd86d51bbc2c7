package mcp

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func id(t *testing.T, n int) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(float64(n))
	require.NoError(t, err)
	return id
}

func TestLedger(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	l := newLedger()
	l.arrived(id(t, 1))
	written := l.answering(id(t, 1), []string{"a"})
	l.arrived(id(t, 2))
	require.Empty(t, l.takeDue(over), "it is not written yet")
	require.Equal(t, []string{"a"}, l.held())
	written(nil)
	require.Equal(t, []string{"a"}, l.takeDue(t.Context()))
	require.Empty(t, l.held())
	l.putBack([]string{"a"})
	require.Equal(t, []string{"a"}, l.takeDue(t.Context()))

	// The client takes no answer of 2 any more, before and after it is there.
	l.cancelled(id(t, 2))
	l.answering(id(t, 2), []string{"b"})(nil)
	require.Equal(t, []string{"b"}, l.takeReturned(5))
	l.arrived(id(t, 3))
	l.answering(id(t, 3), []string{"c", "d", "e"})(nil)
	l.cancelled(id(t, 3))
	require.Equal(t, []string{"c", "d"}, l.takeReturned(2))
	require.Equal(t, []string{"e"}, l.takeReturned(2))
	l.cancelled(id(t, 3))
	l.arrived(id(t, 4))
	require.Empty(t, l.takeDue(t.Context()))

	// What could not be written did not arrive.
	l.answering(id(t, 4), []string{"f"})(errors.New("broken pipe"))
	require.Equal(t, []string{"f"}, l.takeReturned(5))

	l.arrived(id(t, 5))
	l.drain(over)
	l.answering(id(t, 5), nil)(nil)
	l.drain(t.Context())
}

// A client may give up on an answer that was on its way: then it comes back.
func TestCancelledTooLate(t *testing.T) {
	b := newBench(t, "", nil)
	b.background("one").Exit(0)
	theirs, ours := sdk.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- NewServer(b.o).Run(b.ctx, ours) }()
	raw, err := theirs.Connect(b.ctx)
	require.NoError(t, err)
	say := func(message string) {
		t.Helper()
		m, err := jsonrpc.DecodeMessage([]byte(message))
		require.NoError(t, err)
		require.NoError(t, raw.Write(b.ctx, m))
	}
	hear := func() string {
		t.Helper()
		m, err := raw.Read(b.ctx)
		require.NoError(t, err)
		text, err := jsonrpc.EncodeMessage(m)
		require.NoError(t, err)
		return string(text)
	}
	read := func(n int) string {
		t.Helper()
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read_completions","arguments":{}}}`, n))
		return hear()
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	require.Contains(t, hear(), "2025-06-18")
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.Contains(t, read(2), `"name":"one"`)
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	require.Contains(t, read(3), `"name":"one"`, "it comes back")
	require.NotContains(t, read(4), `"name":"one"`)
	require.NoError(t, raw.Close())
	require.NoError(t, <-served)
	require.Empty(t, b.unread())
}
