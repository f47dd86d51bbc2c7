package child

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	hbus "github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// claims are log-ins of a program that says who it is, in every way that the server
// would take; %s is the id of its subagent.
var claims = map[string]string{
	"as it is":       `{"verbose":false,"user":"%s","pass":"x"}`,
	"upper case":     `{"verbose":false,"USER":"%s","Pass":"x"}`,
	"a long s":       `{"verbose":false,"u` + "\u017f" + `er":"%s"}`,
	"escaped":        `{"verbose":false,"u\u017fer":"%s","\u0055ser":"%[1]s"}`,
	"every case":     `{"verbose":false,"User":"%s","uSer":"%[1]s","usEr":"%[1]s"}`,
	"at the end":     `{"verbose":false,"zzz":1,"uSER":"%s"}`,
	"nested":         `{"verbose":false,"":{"user":"%s"},"x":[{"pass":"x"}]}`,
	"other accounts": `{"verbose":false,"USER":"%s","account":"$SYS","New_Account":true,"auth_token":"y","JWT":"z","nKey":"n","sig":"s","proxy_sig":"p","remote_account":"r"}`,
}

// Whatever a program says it is, the supervisor's word takes its place.
func TestVouch(t *testing.T) {
	d := &door{id: events.NewID(), token: "secret"}
	const spoken = `"verbose":false,"pedantic":false,"echo":true,"headers":true,"no_responders":true,"tls_required":false,"name":"n","lang":"go","version":"1","protocol":1`
	line, err := d.vouch([]byte(`CONNECT {` + spoken + `,"user":"client","pass":"x","more":1}` + "\r\n"))
	require.NoError(t, err)
	require.JSONEq(t, `{`+spoken+`,"user":"`+d.id+`/rpc","pass":"secret"}`, string(line[len("CONNECT "):]))
	require.Equal(t, "\r\n", string(line[len(line)-2:]))

	// The server reads what is passed on as it reads every log-in.
	for name, claim := range claims {
		line, err := d.vouch(fmt.Appendf(nil, "CONNECT "+claim+"\r\n", d.id))
		require.NoError(t, err, name)
		var got natsd.ClientOpts
		require.NoError(t, json.Unmarshal(line[len("CONNECT "):], &got), name)
		require.Equal(t, natsd.ClientOpts{Username: d.id + "/rpc", Password: "secret"}, got, name)
	}
	for _, bad := range []string{
		"PING\r\n", "CONNECT\r\n", "CONNECT null\r\n", "CONNECT []\r\n", "\r\n", "connect {}\r\n",
		`CONNECT {"user":"a","user":"b"}` + "\r\n", `CONNECT {"more":1,"more":2}` + "\r\n", `CONNECT {"name":{"user":"a"}}` + "\r\n",
	} {
		_, err := d.vouch([]byte(bad))
		require.Error(t, err, bad)
	}
}

// Behind the real bus a program that comes through the door has the rights of what
// runs inside, never those of its supervisor.
func TestDoorRights(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
	defer cancel()
	server, err := hbus.Start(ctx, hbus.Options{StoreDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		require.NoError(t, server.Shutdown(ctx))
	})
	dir := testkit.Dir(t)
	require.NoError(t, server.ServeChildren(dir))
	id := events.NewID()
	server.Grant(id, hbus.HashToken("secret"))
	path := filepath.Join(dir, "door.sock")
	d, err := openDoor(path, filepath.Join(dir, socketName), id, "secret")
	require.NoError(t, err)
	t.Cleanup(d.close)

	own, supervisors := events.RPCSubject(id, events.KindQuery), events.ChildSubject(id, events.ChildResult)
	for name, claim := range claims {
		t.Run(name, func(t *testing.T) {
			p := enter(t, path)
			p.say("CONNECT "+claim+"\r\nPING\r\n", id)
			require.Equal(t, "PONG", p.line(), "it is let in")
			p.say("PUB %s 2\r\n{}\r\nPING\r\n", own)
			require.Equal(t, "PONG", p.line(), "it may ask")
			p.say("PUB %s 2\r\n{}\r\nPING\r\n", supervisors)
			require.Contains(t, p.line(), "Permissions Violation for Publish")
			require.Equal(t, "PONG", p.line())
			p.say("SUB %s 1\r\nPING\r\n", events.ControlSubject(id))
			require.Contains(t, p.line(), "Permissions Violation for Subscription")
			require.Equal(t, "PONG", p.line())

			// The server keeps the password of the first log-in for a second one.
			p.say(`CONNECT {"verbose":false,"user":"%s"}`+"\r\nPING\r\n", id)
			require.Contains(t, p.line(), "Authorization Violation")
		})
	}
}

// program speaks the bus's protocol through a door.
type program struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func enter(t *testing.T, path string) *program {
	t.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	p := &program{t: t, conn: conn, in: bufio.NewReader(conn)}
	require.True(t, strings.HasPrefix(p.line(), "INFO "))
	return p
}

func (p *program) say(format string, args ...any) {
	p.t.Helper()
	_, err := fmt.Fprintf(p.conn, format, args...)
	require.NoError(p.t, err)
}

// line is the next one that the bus says; its questions whether the program lives are
// left out.
func (p *program) line() string {
	p.t.Helper()
	for {
		line, err := p.in.ReadString('\n')
		require.NoError(p.t, err)
		if line = strings.TrimSpace(line); line != "PING" {
			return line
		}
	}
}
