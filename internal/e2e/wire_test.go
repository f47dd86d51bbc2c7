package e2e

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// Any NATS client can drive the coordinator over TCP, and finds the six events
// documented there.
func TestAnyNATSClient(t *testing.T) {
	u := newUser(t, os.Getuid())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())

	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	serve := u.command(ctx, "serve", "--tcp", addr)
	require.NoError(t, serve.Start())
	t.Cleanup(func() { serve.Wait() })
	require.True(t, u.eventually(func() bool { return u.run("ps").code == 0 }))
	token, err := os.ReadFile(filepath.Join(u.home, "state/run/client.token"))
	require.NoError(t, err)

	_, err = nats.Connect("nats://"+addr, nats.UserInfo("client", "wrong"))
	require.ErrorIs(t, err, nats.ErrAuthorization)
	nc, err := nats.Connect("nats://"+addr, nats.UserInfo("client", strings.TrimSpace(string(token))))
	require.NoError(t, err)
	defer nc.Close()

	msg, err := nc.RequestWithContext(ctx, "$SRV.INFO.hayward", nil)
	require.NoError(t, err)
	var info micro.Info
	require.NoError(t, json.Unmarshal(msg.Data, &info))
	require.Len(t, info.Endpoints, 6)
	for i, e := range info.Endpoints {
		require.Equal(t, events.RequestSubject(events.Kinds[i]), e.Subject)
		for _, schema := range []string{"request_schema", "response_schema"} {
			var s map[string]any
			require.NoError(t, json.Unmarshal([]byte(e.Metadata[schema]), &s), e.Name)
			require.Equal(t, "object", s["type"], e.Name)
		}
	}

	ask := func(subject, body string) *nats.Msg {
		msg, err := nc.RequestWithContext(ctx, subject, []byte(body))
		require.NoError(t, err)
		return msg
	}
	work, err := json.Marshal(u.work)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		subject, body string
		code          events.Code
		says          string
	}{
		"unknown field":     {"hayward.v1.spawn", `{"parent_session_id":"s","comand":["true"]}`, events.CodeInvalidRequest, "comand"},
		"wrongly cased":     {"hayward.v1.spawn", `{"Parent_Session_ID":"s"}`, events.CodeInvalidRequest, "Parent_Session_ID"},
		"duplicate field":   {"hayward.v1.query", `{"ids":["a"],"ids":["b"]}`, events.CodeInvalidRequest, "ids"},
		"wrong type":        {"hayward.v1.spawn", `{"parent_session_id":"s","command":"true"}`, events.CodeInvalidRequest, "command"},
		"not JSON":          {"hayward.v1.cancel", `hello`, events.CodeInvalidRequest, ""},
		"empty":             {"hayward.v1.spawn", ``, events.CodeInvalidRequest, "parent_session_id"},
		"bad id":            {"hayward.v1.spawn", `{"parent_session_id":"s","id":"../x","command":["true"],"cwd":` + string(work) + `}`, events.CodeInvalidID, "../x"},
		"unknown type":      {"hayward.v1.spawn", `{"parent_session_id":"s","subagent_type":"wizard","cwd":` + string(work) + `}`, events.CodeUnknownType, "wizard"},
		"missing command":   {"hayward.v1.spawn", `{"parent_session_id":"s","cwd":` + string(work) + `}`, events.CodeMissingCommand, ""},
		"cwd missing":       {"hayward.v1.spawn", `{"parent_session_id":"s","command":["true"],"cwd":"/nope"}`, events.CodeCwdMissing, "/nope"},
		"oversize":          {"hayward.v1.spawn", `{"parent_session_id":"s","prompt":"` + strings.Repeat("a", 1<<20) + `"}`, events.CodeTooLarge, ""},
		"oversize prompt":   {"hayward.v1.spawn", `{"parent_session_id":"s","command":["true"],"prompt":"` + strings.Repeat("a", 300<<10) + `"}`, events.CodeTooLarge, "prompt_file"},
		"two targets":       {"hayward.v1.cancel", `{"target":{"ids":["abcd"],"session":true}}`, events.CodeInvalidRequest, "target"},
		"session missing":   {"hayward.v1.outstanding", `{"parent_prompt_id":"p"}`, events.CodeInvalidRequest, "parent_session_id"},
		"completions of no": {"hayward.v1.completions", `{}`, events.CodeInvalidRequest, "parent_session_id"},
	} {
		t.Run(name, func(t *testing.T) {
			msg := ask(c.subject, c.body)
			require.Equal(t, string(c.code), msg.Header.Get(micro.ErrorCodeHeader), string(msg.Data))
			require.NotEmpty(t, msg.Header.Get(micro.ErrorHeader))
			var e events.Error
			require.NoError(t, events.DecodeRecord(msg.Data, &e))
			require.Contains(t, e.Error(), c.says)
		})
	}
	reply := ask("hayward.v1.spawn", `{"parent_session_id":"s","command":["echo","over the bus"],"run_in_background":false,"cwd":`+string(work)+`}`)
	var spawned events.SpawnReply
	require.NoError(t, events.DecodeRecord(reply.Data, &spawned), string(reply.Data))
	require.Equal(t, "over the bus\n", spawned.Text)
	require.NotEmpty(t, reply.Header.Get(events.HeaderAck))
	require.Empty(t, list(t, u.run("ps", "--json").object(t), "subagents"), "nothing refused was started")
}
