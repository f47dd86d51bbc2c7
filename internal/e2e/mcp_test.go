package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// parent is an MCP client of hayward mcp.
type parent struct {
	t   *testing.T
	ctx context.Context
	cmd *exec.Cmd
	cs  *sdk.ClientSession
	// stderr is what the server said beside the protocol.
	stderr said
}

// said collects what a process writes while it runs.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// connectMCP starts hayward mcp and connects to it.
func (u *user) connectMCP(version string, session string, args ...string) *parent {
	u.t.Helper()
	var env []string
	if session != "" {
		env = append(env, "HAYWARD_SESSION="+session)
	}
	return u.connectTo(version, env, append([]string{"mcp"}, args...)...)
}

// connectTo starts hayward and connects to the MCP server that this becomes.
func (u *user) connectTo(version string, env []string, args ...string) *parent {
	u.t.Helper()
	p := &parent{t: u.t}
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithTimeout(context.Background(), deadline)
	u.t.Cleanup(cancel)
	p.cmd = u.command(p.ctx, args...)
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stderr = &p.stderr
	var err error
	p.cs, err = sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil).
		Connect(p.ctx, &sdk.CommandTransport{Command: p.cmd}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(u.t, err, p.stderr.String())
	u.t.Cleanup(func() { _ = p.cs.Close() }) // for a test that failed before it did
	return p
}

// leave closes the connection; the server ends without an error.
func (p *parent) leave() {
	p.t.Helper()
	require.NoError(p.t, p.cs.Close(), p.stderr.String())
	require.Zero(p.t, p.cmd.ProcessState.ExitCode())
	require.Empty(p.t, p.stderr.String())
}

// call calls a tool and returns its structured content and whether it is an error.
func (p *parent) call(name string, arguments map[string]any) (map[string]any, bool) {
	p.t.Helper()
	r, err := p.cs.CallTool(p.ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	require.NoError(p.t, err, p.stderr.String())
	raw, err := json.Marshal(r.StructuredContent)
	require.NoError(p.t, err)
	var o map[string]any
	require.NoError(p.t, json.Unmarshal(raw, &o))
	return o, r.IsError
}

// done calls a tool that must not fail.
func (p *parent) done(name string, arguments map[string]any) map[string]any {
	p.t.Helper()
	o, failed := p.call(name, arguments)
	require.False(p.t, failed, "%v", o)
	return o
}

// spawn starts a shell line in the background.
func (p *parent) spawn(name, line string) (id string) {
	p.t.Helper()
	o := p.done("spawn_subagent", map[string]any{
		"name": name, "command": []string{"sh", "-c", line}, "run_in_background": true, "parent_prompt_id": "turn-1",
	})
	return list(p.t, o, "subagents")[0]["subagent_id"].(string)
}

// names are the names of the subagents in an answer.
func names(t *testing.T, o map[string]any) []string {
	t.Helper()
	var out []string
	for _, s := range list(t, o, "subagents") {
		out = append(out, s["name"].(string))
	}
	return out
}

// A parent agent spawns, waits, cancels and reads over MCP, in a session of its own.
func TestMCP(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		foreign := u.detach("--session", "other", "--", "true")
		p := u.connectMCP("2025-06-18", "", "--call-limit", "2s")
		p.spawn("one", "echo one; pwd")
		p.spawn("two", "echo two >&2; exit 3")
		long := p.spawn("long", "sleep 600")

		o := p.done("query_subagents", map[string]any{"ids": []string{"one", "two"}, "wait_ms": 30_000})
		ended := list(t, o, "subagents")
		require.Equal(t, "one\n"+u.work+"\n", ended[0]["output"])
		require.Equal(t, "workspace", ended[0]["sandbox"])
		require.Equal(t, "two\n", ended[1]["stderr_tail"])
		require.EqualValues(t, 3, ended[1]["exit_code"])
		require.Equal(t, false, ended[1]["success"])

		o = p.done("query_subagents", map[string]any{"ids": []string{"long"}, "wait_ms": 600_000})
		require.Equal(t, []any{long}, o["still_running"], "the limit of a call is over")
		o = p.done("outstanding", map[string]any{"parent_prompt_id": "turn-1"})
		require.Equal(t, true, o["outstanding"].(map[string]any)["background_live"])
		o = p.done("cancel_subagents", map[string]any{"ids": []string{"long"}})
		require.Equal(t, "cancelled", list(t, o, "results")[0]["outcome"])
		require.Empty(t, list(t, p.done("read_completions", nil), "subagents"), "all was told")

		o, failed := p.call("query_subagents", map[string]any{"ids": []string{foreign}})
		require.True(t, failed)
		require.Equal(t, "unknown_id", o["error"].(map[string]any)["code"])
		o, failed = p.call("spawn_subagent", map[string]any{"command": []string{"true"}, "sandbox": "off"})
		require.True(t, failed)
		require.Equal(t, "forbidden", o["error"].(map[string]any)["code"])
		p.leave()
	})
}

// What was in an answer that got lost comes back to the next connection of the
// session, once.
func TestMCPLostAnswer(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		p := u.connectMCP("", "review")
		p.spawn("one", "true")
		p.spawn("two", "true")
		require.Equal(t, []string{"one"}, names(t, p.done("query_subagents", map[string]any{"ids": []string{"one"}, "wait_ms": 30_000})))
		require.Equal(t, []string{"two"}, names(t, p.done("query_subagents", map[string]any{"ids": []string{"two"}, "wait_ms": 30_000})))
		require.NoError(t, p.cmd.Process.Kill()) // with the last answer not gone on from
		_ = p.cs.Close()

		p = u.connectMCP("2025-11-25", "review")
		require.Equal(t, []string{"two"}, names(t, p.done("read_completions", map[string]any{"wait_ms": 30_000})))
		// The daemon may go meanwhile: the next call has another one started.
		require.Zero(t, u.run("shutdown").code)
		require.Empty(t, names(t, p.done("read_completions", nil)))
		p.leave()
		require.Empty(t, u.completions("--session", "review"))
	})
}

// However the connection ends, the server does, and says nothing on stdout that is
// not protocol; subagents go on or not, as asked.
func TestMCPEnd(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		r := u.runWith("nonsense\n", "mcp")
		require.Equal(t, 125, r.code, r.stderr)
		require.Empty(t, r.stdout)
		require.Contains(t, r.stderr, "invalid character")

		// Calls that wait are answered when the client closes its side.
		r = u.runWith(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"spawn_subagent","arguments":{"name":"stays","command":["sleep","600"]}}}
`, "mcp")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, `"id":2`)
		require.Contains(t, r.stdout, "still_running")
		require.Zero(t, u.run("cancel", "stays").code, "it went on")

		p := u.connectMCP("", "", "--cancel-on-exit")
		p.spawn("goes", "sleep 600")
		waiting := make(chan error, 1)
		go func() {
			_, err := p.cs.CallTool(p.ctx, &sdk.CallToolParams{Name: "query_subagents", Arguments: map[string]any{"ids": []string{"goes"}, "wait_ms": 60_000}})
			waiting <- err
		}()
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
		<-waiting // answered, or cut off: the signal may come before the call
		p.leave()
		require.Empty(t, u.run("ps", "-q").stdout, "it was cancelled")
	})
}

// Inside a subagent there is no coordinator to spawn with, and each call says so.
func TestMCPInsideASubagent(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		bin := filepath.Join(u.work, "hayward")
		require.Zero(t, u.run("spawn", "--", "cp", u.bin, bin).code)
		r := u.runWith(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_subagents","arguments":{}}}
`, "spawn", "--env", "XDG_STATE_HOME="+filepath.Join(u.work, "none"), "--", bin, "mcp")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, `"isError":true`)
		require.Contains(t, r.stdout, "this runs inside subagent")
		require.Contains(t, r.stdout, `"code":"forbidden"`)
	})
}
