package mcp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testDeadline bounds every wait of a test; nothing is meant to reach it.
const testDeadline = 30 * time.Second

// bench is a server with a scripted coordinator, and a client of it.
type bench struct {
	t     *testing.T
	ctx   context.Context
	s     *fakeservice.Service
	coord *fakeservice.Coordinator
	o     Options
	// cs is the client's session; leave ends it and returns what Run did.
	cs    *sdk.ClientSession
	leave func() error
}

// newBench connects a client that speaks a version of the protocol, the newest
// when it is empty.
func newBench(t *testing.T, version string, change func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(t.Context(), testDeadline)
	t.Cleanup(cancel)
	var err error
	b.s, err = fakeservice.Start(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(b.s.Close)
	b.coord = fakeservice.NewCoordinator(b.s, func(*fakeservice.Coordinator) {})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	b.o = Options{
		Connect: func(ctx context.Context) (*client.Client, error) {
			return client.Connect(ctx, client.Options{Socket: b.s.Socket, TokenFile: b.s.TokenFile, Patience: testDeadline, Environ: []string{"PATH=/bin"}})
		},
		Session: "s", Version: "1", Dir: dir, Sandbox: "workspace", Sandboxes: []string{"workspace", "strict"},
		Limits: map[string]int64{"per_session": 32, "max_runtime_ms": 14_400_000}, CallLimit: testDeadline,
		Log: t.Logf,
	}
	if change != nil {
		change(&b.o)
	}
	b.cs, b.leave = b.join(version, nil)
	return b
}

// join connects a client to a server of its own.
func (b *bench) join(version string, o *sdk.ClientOptions) (*sdk.ClientSession, func() error) {
	b.t.Helper()
	theirs, ours := sdk.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- NewServer(b.o).Run(b.ctx, ours) }()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).
		Connect(b.ctx, theirs, &sdk.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(b.t, err)
	var once sync.Once
	leave := func() (err error) {
		once.Do(func() {
			require.NoError(b.t, cs.Close())
			err = <-served
		})
		return err
	}
	b.t.Cleanup(func() { require.NoError(b.t, leave()) })
	return cs, leave
}

// reply is an answer as a client sees it.
type reply struct {
	body
	text  string
	error bool
	ends  []any
}

func (b *bench) call(name string, arguments any) reply {
	b.t.Helper()
	return b.callOn(b.cs, b.ctx, name, arguments)
}

func (b *bench) callOn(cs *sdk.ClientSession, ctx context.Context, name string, arguments any) reply {
	b.t.Helper()
	r, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	require.NoError(b.t, err)
	return b.read(r)
}

func (b *bench) read(r *sdk.CallToolResult) reply {
	b.t.Helper()
	raw, err := json.Marshal(r.StructuredContent)
	require.NoError(b.t, err)
	out := reply{error: r.IsError}
	require.NoError(b.t, events.DecodeRecord(raw, &out.body))
	require.Len(b.t, r.Content, 1)
	out.text = r.Content[0].(*sdk.TextContent).Text
	out.ends, _ = r.Meta[MetaEnds].([]any)
	return out
}

// background spawns a subagent that goes on, and returns it.
func (b *bench) background(name string) *fakeservice.Agent {
	b.t.Helper()
	r := b.call("spawn_subagent", map[string]any{"command": []string{"work", name}, "name": name, "run_in_background": true})
	require.False(b.t, r.error, r.text)
	return b.coord.Agent(r.Subagents[0].ID)
}

// unread are the names of the ends that another reader would get.
func (b *bench) unread() string {
	b.t.Helper()
	c, err := b.o.Connect(b.ctx)
	require.NoError(b.t, err)
	defer c.Close()
	r, err := c.Completions(b.ctx, events.Completions{ParentSessionID: b.o.Session, Peek: true})
	require.NoError(b.t, err)
	var names []string
	for _, e := range r.Value.Completions {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}
