package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"
)

// documented is a request as docs/nats.md has it.
var documented = regexp.MustCompile(`(?m)^nats request (?:--\S+ (?:\d+s )?)*(hayward\.\S+) '(.*)'(?: \| jq.*)?$`)

// TestDocumentedSession makes the requests of docs/nats.md, in their order, as
// any NATS client would.
func TestDocumentedSession(t *testing.T) {
	u := newUser(t, os.Getuid())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	u.serveWith("--tcp", addr)
	token, err := os.ReadFile(filepath.Join(u.home, "state/run/client.token"))
	require.NoError(t, err)
	nc, err := nats.Connect("nats://"+addr, nats.UserInfo("client", strings.TrimSpace(string(token))))
	require.NoError(t, err)
	defer nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	feed, err := nc.SubscribeSync("hayward.v1.feed.>")
	require.NoError(t, err)

	page, err := os.ReadFile("../../docs/nats.md")
	require.NoError(t, err)
	requests := documented.FindAllStringSubmatch(string(page), -1)
	require.Equal(t, strings.Count(string(page), "\nnats request "), len(requests))

	type object = map[string]any
	first := func(o object, member string) object { return list(t, o, member)[0] }
	data := func(o object) string {
		text, err := base64.StdEncoding.DecodeString(o["data"].(string))
		require.NoError(t, err)
		return string(text)
	}
	id := ""
	checks := []func(o object){
		func(o object) { require.Equal(t, true, o["accepted"]); require.Equal(t, "hello", o["name"]) },
		func(o object) { require.Equal(t, true, o["backgrounded"]) },
		func(o object) { require.Equal(t, "completed", first(o, "snapshots")["status"]) },
		func(o object) { require.Equal(t, "slow", first(o, "subagents")["name"]) },
		func(o object) { require.Equal(t, "hello\n", data(o)) },
		func(o object) { require.Equal(t, "oops\n", data(o)) },
		func(o object) { id = first(o, "completions")["dedupe_id"].(string) },
		func(o object) { require.NotEmpty(t, o["acked"]) },
		func(o object) { require.Empty(t, o["completions"]) },
		func(o object) { require.Equal(t, "would_cancel", first(o, "results")["outcome"]) },
		func(o object) { require.Equal(t, "cancelled", first(o, "results")["outcome"]) },
		func(o object) { require.Equal(t, "would_remove", first(o, "results")["outcome"]) },
		func(o object) { require.Equal(t, "removed", first(o, "results")["outcome"]) },
		func(o object) { require.Equal(t, "invalid_request", o["code"]) },
	}
	require.Len(t, requests, len(checks))
	for i, r := range requests {
		body := strings.NewReplacer(`'$PWD'`, u.work, `"ID"`, `"`+id+`"`).Replace(r[2])
		msg, err := nc.RequestWithContext(ctx, r[1], []byte(body))
		require.NoError(t, err, r[0])
		require.Equal(t, i == len(requests)-1, msg.Header.Get(micro.ErrorCodeHeader) != "", "%s: %s", r[0], msg.Data)
		var o object
		require.NoError(t, json.Unmarshal(msg.Data, &o), r[0])
		checks[i](o)
	}
	event, err := feed.NextMsgWithContext(ctx)
	require.NoError(t, err)
	require.Contains(t, event.Subject, "hayward.v1.feed.")
}
