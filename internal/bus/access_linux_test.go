package bus

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/hayward-dev/hayward/events"
)

// right is one line of a permissions matrix.
type right struct {
	subject   string
	publish   bool
	subscribe bool
}

func checkRights(t *testing.T, p *peer, rights []right) {
	t.Helper()
	for _, r := range rights {
		require.NoError(t, p.Publish(r.subject, []byte("x")))
		got := p.violations(t)
		require.Equalf(t, r.publish, len(got) == 0, "publish on %s: %v", r.subject, got)

		sub, err := p.SubscribeSync(r.subject)
		require.NoError(t, err)
		got = p.violations(t)
		require.Equalf(t, r.subscribe, len(got) == 0, "subscribe to %s: %v", r.subject, got)
		if r.subscribe {
			require.NoError(t, sub.Unsubscribe())
		}
	}
}

func TestChildRights(t *testing.T) {
	f := start(t, nil)
	a, p := f.child(t)
	b := events.NewID()
	own := strings.TrimSuffix(events.ChildPermission(a), ">")
	checkRights(t, p, []right{
		{events.ChildSubject(a, events.ChildStarted), true, true},
		{events.ChildSubject(a, events.ChildItem), true, true},
		{events.ChildSubject(a, events.ChildResult), true, true},
		{events.ChildSubject(a, events.ChildHeartbeat), true, true},
		{own + "rpc.spawn", true, true},
		{events.ControlSubject(a), false, true},
		{events.ControlSubject(a) + ".x", false, true},
		{events.ChildInbox(a) + ".x", false, true},

		{events.ChildSubject(b, events.ChildItem), false, false},
		{events.ControlSubject(b), false, false},
		{events.ChildInbox(b) + ".x", false, false},
		{events.ChildSubjectAll(events.ChildItem), false, false},
		{events.InboxPrefix + ".>", false, false},
		{events.ClientInboxPrefix + ".x", false, false},
		{coreInbox + ".x", false, false},
		{"_INBOX.x", false, false},
		{">", false, false},
		{events.SubjectPrefix + ".>", false, false},

		{events.RequestSubject(events.KindSpawn), false, false},
		{events.RequestSubject(events.KindCancel), false, false},
		{events.FilesSubject(events.FilesLogs), false, false},
		{events.AdminSubject(events.AdminShutdown), false, false},
		{events.AckPrefix + ".x", false, false},
		{events.FeedSubject(a, events.StateCompleted), false, false},
		{"$SRV.PING", false, false},
		{"$KV." + events.Bucket + "." + a, false, false},
		{"$JS.API.INFO", false, false},
		{"$JS.API.STREAM.INFO.KV_" + events.Bucket, false, false},
		{"$JS.API.DIRECT.GET.KV_" + events.Bucket + ".$KV." + events.Bucket + "." + a, false, false},
		{"$JS.API.STREAM.PURGE." + events.FeedStream, false, false},
		{"$SYS.REQ.SERVER.PING", false, false},
	})
}

func TestClientRights(t *testing.T) {
	f := start(t, nil)
	f.SetClientToken("secret")
	p, err := f.dialClient(t, "secret")
	require.NoError(t, err)
	id := events.NewID()
	list := []right{
		{events.FilesSubject(events.FilesLogs), true, false},
		{events.AdminSubject(events.AdminStatus), true, false},
		{events.AckPrefix + ".token", true, false},
		{"$SRV.PING", true, false},
		{"$SRV.INFO.hayward", true, false},
		{events.FeedSubjects, false, true},
		{events.FeedSubject(id, events.StateActive), false, true},
		{events.ChildSubjectAll(events.ChildItem), false, true},
		{"_INBOX.x", false, true},
		{events.ClientInboxPrefix + ".x", false, true},
		{"$JS.API.STREAM.INFO." + events.FeedStream, true, false},
		{"$JS.API.CONSUMER.CREATE." + events.FeedStream, true, false},
		{"$JS.ACK." + events.FeedStream + ".x", true, false},

		{events.ChildSubject(id, events.ChildResult), false, false},
		{events.ChildSubject(id, events.ChildItem), false, true},
		{events.ControlSubject(id), false, false},
		{events.ChildInbox(id) + ".x", false, false},
		{coreInbox + ".>", false, false},
		{">", false, false},
		{"$KV." + events.Bucket + "." + id, false, false},
		{"$JS.API.STREAM.INFO.KV_" + events.Bucket, false, false},
		{"$JS.API.STREAM.PURGE." + events.FeedStream, false, false},
		{"$JS.API.STREAM.DELETE." + events.FeedStream, false, false},
		{"$JS.API.STREAM.UPDATE." + events.FeedStream, false, false},
		{"$JS.API.STREAM.CREATE.x", false, false},
		{"$JS.API.STREAM.MSG.DELETE." + events.FeedStream, false, false},
		{"$JS.API.CONSUMER.CREATE.KV_" + events.Bucket, false, false},
	}
	for _, k := range []events.Kind{
		events.KindSpawn, events.KindQuery, events.KindCancel,
		events.KindListActive, events.KindCompletions, events.KindOutstanding,
	} {
		list = append(list, right{events.RequestSubject(k), true, false})
	}
	checkRights(t, p, list)
}

// A child answers what was asked on its control subject, wherever the answer
// goes, and once.
func TestChildAnswersControl(t *testing.T) {
	f := start(t, nil)
	id, p := f.child(t)
	core := f.core(t)
	_, err := p.Subscribe(events.ControlSubject(id), func(m *nats.Msg) {
		for range 2 {
			if err := m.Respond([]byte("pong")); err != nil {
				p.errors <- err
			}
		}
	})
	require.NoError(t, err)
	require.NoError(t, p.FlushTimeout(deadline))

	reply, err := core.Request(events.ControlSubject(id), []byte("ping"), deadline)
	require.NoError(t, err)
	require.Equal(t, "pong", string(reply.Data))
	require.ErrorContains(t, await(t, "the second answer's refusal", p.errors), "Permissions Violation for Publish")
}

// A client reads the feed through JetStream.
func TestClientReadsFeed(t *testing.T) {
	f := start(t, nil)
	f.SetClientToken("secret")
	ctx := t.Context()
	core, err := jetstream.New(f.core(t))
	require.NoError(t, err)
	_, err = core.CreateStream(ctx, jetstream.StreamConfig{Name: events.FeedStream, Subjects: []string{events.FeedSubjects}})
	require.NoError(t, err)
	id := events.NewID()
	_, err = core.Publish(ctx, events.FeedSubject(id, events.StateQueued), []byte("first"))
	require.NoError(t, err)

	p, err := f.dialClient(t, "secret")
	require.NoError(t, err)
	js, err := jetstream.New(p.Conn)
	require.NoError(t, err)
	c, err := js.OrderedConsumer(ctx, events.FeedStream, jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	m, err := c.Next(jetstream.FetchMaxWait(deadline))
	require.NoError(t, err)
	require.Equal(t, "first", string(m.Data()))
	require.Empty(t, p.violations(t))
}

func TestRefusedCredentials(t *testing.T) {
	f := start(t, nil)
	f.SetClientToken("secret")
	id, other := events.NewID(), events.NewID()
	f.Grant(id, HashToken("right"))
	f.Grant(other, "not a hash")

	for name, try := range map[string]struct {
		socket      func(*testing.T, string, string) error
		user, token string
	}{
		"wrong token":                {f.tryChild, id, "wrong"},
		"no token":                   {f.tryChild, id, ""},
		"the hash as token":          {f.tryChild, id, HashToken("right")},
		"another's token":            {f.tryChild, other, "right"},
		"unknown id":                 {f.tryChild, events.NewID(), "right"},
		"a grant without a hash":     {f.tryChild, other, ""},
		"client on the child socket": {f.tryChild, ClientUser, "secret"},
		"core on the child socket":   {f.tryChild, internalUser, f.internal},
		"core on the client socket":  {f.tryClient, internalUser, f.internal},
		"child on the client socket": {f.tryClient, id, "right"},
		"client with a wrong token":  {f.tryClient, ClientUser, "wrong"},
		"nobody":                     {f.tryClient, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, try.socket(t, try.user, try.token), nats.ErrAuthorization)
		})
	}
	require.NoError(t, f.tryChild(t, id, "right"))
	require.NoError(t, f.tryClient(t, ClientUser, "secret"))
	require.NotZero(t, f.refusals(zap.ErrorLevel))
}

// refusals counts the lines of the log about refused log-ins.
func (f *fixture) refusals(level zapcore.Level) int {
	return f.logs.FilterMessageSnippet("authentication error").FilterLevelExact(level).Len()
}

func (f *fixture) tryChild(t *testing.T, user, token string) error {
	_, err := f.dialChild(t, user, token)
	return err
}

func (f *fixture) tryClient(t *testing.T, user, token string) error {
	_, err := connect(t, f.client, user, token, events.ClientInboxPrefix)
	return err
}

func TestNoClientBeforeItsTokenIsSet(t *testing.T) {
	f := start(t, nil)
	require.ErrorIs(t, f.tryClient(t, ClientUser, ""), nats.ErrAuthorization)
}

func TestRevoke(t *testing.T) {
	f := start(t, nil)
	id, p := f.child(t)
	_, other := f.child(t)
	drained := f.Drained(id)
	select {
	case <-drained:
		t.Fatal("drained while connected")
	default:
	}

	f.Revoke(id)
	await(t, "the end of the connection", p.disconnected)
	await(t, "the end of the bridge", drained)
	require.ErrorIs(t, f.tryChild(t, id, "token of "+id), nats.ErrAuthorization)
	require.Zero(t, f.refusals(zap.ErrorLevel), "a child that has ended may come late")
	require.NotZero(t, f.refusals(zap.DebugLevel))
	require.NoError(t, other.FlushTimeout(deadline), "another child's connection lives")

	// A new grant lets the same connection back in: it never gave up.
	f.Grant(id, HashToken("token of "+id))
	await(t, "the reconnect", p.reconnected)
	f.Revoke(events.NewID())
}

func TestChildConnectionsAreBounded(t *testing.T) {
	f := start(t, nil)
	id, first := f.child(t)
	for range maxChildConns - 1 {
		require.NoError(t, f.tryChild(t, id, "token of "+id))
	}
	require.ErrorIs(t, f.tryChild(t, id, "token of "+id), nats.ErrAuthorization)
	first.Close()
	require.Eventually(t, func() bool { return f.tryChild(t, id, "token of "+id) == nil }, deadline, time.Millisecond,
		"a closed connection makes room")
}

func TestReplyAllowed(t *testing.T) {
	a, b := events.NewID(), events.NewID()
	for _, c := range []struct {
		principal, reply string
		want             bool
	}{
		{ClientUser, "_INBOX.x", true},
		{ClientUser, events.ClientInboxPrefix + ".x", true},
		{ClientUser, "", false},
		{ClientUser, "_INBOX", false},
		{ClientUser, events.ControlSubject(a), false},
		{ClientUser, "$KV." + events.Bucket + "." + a, false},
		{ClientUser, events.ChildInbox(a) + ".x", false},
		{ClientUser, coreInbox + ".x", false},
		{a, events.ChildInbox(a) + ".x", true},
		{a, events.ChildInbox(b) + ".x", false},
		{a, events.ControlSubject(b), false},
		{a, "$KV." + events.Bucket + "." + b, false},
		{"*", events.InboxPrefix + ".*.x", false},
	} {
		require.Equalf(t, c.want, ReplyAllowed(c.principal, c.reply), "%s to %q", c.principal, c.reply)
	}
}

func TestInterested(t *testing.T) {
	f := start(t, nil)
	id, p := f.child(t)
	subject := events.ChildInbox(id) + ".x"
	require.False(t, f.Interested(subject))
	sub, err := p.SubscribeSync(events.ChildInbox(id) + ".*")
	require.NoError(t, err)
	require.NoError(t, p.Flush())
	require.True(t, f.Interested(subject))
	require.NoError(t, sub.Unsubscribe())
	require.NoError(t, p.Flush())
	require.False(t, f.Interested(subject))
}

// What runs inside a child sends the child's requests and nothing else.
func TestInsideRights(t *testing.T) {
	f := start(t, nil)
	a, _ := f.child(t)
	b, _ := f.child(t)
	p := f.inside(t, a)
	list := []right{
		{events.RPCAckSubject(a, "token"), true, false},
		{events.RPCLogsSubject(a), true, false},
		{events.RPCInbox(a) + ".x", false, true},
		{events.RPCInbox(b) + ".x", false, false},
		{events.ChildInbox(a) + ".x", false, false},
		{events.ControlSubject(a), false, false},
		{events.ModelSubject(a), false, false},
		{events.FeedSubjects, false, false},
		{events.AckPrefix + ".x", false, false},
		{">", false, false},
	}
	for _, k := range events.Kinds {
		list = append(list, right{events.RPCSubject(a, k), true, false}, right{events.RPCSubject(b, k), false, false}, right{events.RequestSubject(k), false, false})
	}
	for _, r := range []events.ChildReport{events.ChildItem, events.ChildResult, events.ChildHeartbeat, events.ChildStarted} {
		list = append(list, right{events.ChildSubject(a, r), false, false})
	}
	checkRights(t, p, list)
	require.True(t, ReplyAllowed(a, events.RPCInbox(a)+".x"))
	require.False(t, ReplyAllowed(a, events.RPCInbox(b)+".x"))
}
