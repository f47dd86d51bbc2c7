package bus

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/socket"
)

const (
	// ClientUser is the user name of every client.
	ClientUser = "client"
	// internalUser is that of our own connections. No id looks like it.
	internalUser = "hayward-core"

	// responseTime is how long a child may take to answer a control message: stdin
	// is answered once the command took it.
	responseTime = 10 * time.Minute

	// maxRevoked is how many ended children are remembered.
	maxRevoked = 1024
)

type tokenHash [sha256.Size]byte

// access decides who a connection is and what it may do. It implements the
// server's Authentication.
type access struct {
	internal tokenHash

	// mu guards what follows. The server's locks are taken under it nowhere.
	mu       sync.Mutex
	client   *tokenHash
	granted  map[string]tokenHash  // by child id
	revoked  []string              // the latest ids that were revoked, at most maxRevoked
	bridges  map[uint64]*bridge    // open bridge connections by the server's id
	children map[string]*childConn // children with an open connection, by id
}

// childConn are the open connections of one child.
type childConn struct {
	bridges map[*bridge]struct{}
	// inside counts those of them that programs inside have.
	inside int
	gone   chan struct{} // closed when the last one was closed
}

func newAccess(internal string) *access {
	return &access{
		internal: sha256.Sum256([]byte(internal)),
		granted:  make(map[string]tokenHash),
		bridges:  make(map[uint64]*bridge),
		children: make(map[string]*childConn),
	}
}

// HashToken returns the hash that [Server.Grant] takes.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func (a *access) setClient(token string) {
	sum := tokenHash(sha256.Sum256([]byte(token)))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client = &sum
}

func (a *access) grant(id, hash string) error {
	if !events.ValidID(id) {
		return fmt.Errorf("%q is not an id", id)
	}
	var sum tokenHash
	if n, err := hex.Decode(sum[:], []byte(hash)[:min(len(hash), 2*len(sum))]); err != nil || n != len(sum) || len(hash) != 2*len(sum) {
		return fmt.Errorf("%d characters are not a SHA-256 in hex", len(hash))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.granted[id] = sum
	return nil
}

// revoke forgets the grant and returns the connections that used it.
func (a *access) revoke(id string) []*bridge {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.granted[id]; known {
		a.revoked = append(a.revoked[max(0, len(a.revoked)-maxRevoked+1):], id)
	}
	delete(a.granted, id)
	c := a.children[id]
	if c == nil {
		return nil
	}
	list := make([]*bridge, 0, len(c.bridges))
	for b := range c.bridges {
		list = append(list, b)
	}
	return list
}

// refusedLate reports whether a line of the server's log is about the log-in of
// a child that has ended: one that is over at once may end while it connects.
func (a *access) refusedLate(line string) bool {
	_, user, found := strings.Cut(line, natsd.ErrAuthentication.Error()+` - User "`)
	if !found {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	user = strings.TrimSuffix(user, `"`)
	if id, inside := events.RPCUserID(user); inside {
		user = id
	}
	_, live := a.granted[user]
	return !live && slices.Contains(a.revoked, user)
}

func (a *access) drained(id string) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.children[id]; c != nil {
		return c.gone
	}
	gone := make(chan struct{})
	close(gone)
	return gone
}

// open makes b known before a byte of its peer reaches the server.
func (a *access) open(b *bridge) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bridges[b.cid] = b
}

// close forgets b, which has ended.
func (a *access) close(b *bridge) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.bridges, b.cid)
	c := a.children[b.child]
	if c == nil {
		return
	}
	delete(c.bridges, b)
	if b.inside {
		c.inside--
	}
	if len(c.bridges) == 0 {
		delete(a.children, b.child)
		close(c.gone)
	}
}

// Check implements the server's Authentication.
func (a *access) Check(c natsd.ClientAuthentication) bool {
	if c.Kind() != natsd.CLIENT {
		return false
	}
	opts, addr := c.GetOpts(), c.RemoteAddress()
	if addr == nil {
		return false
	}
	user := &natsd.User{Username: opts.Username}
	var ok bool
	user.Permissions, ok = a.authenticate(c.GetID(), addr.Network() == "tcp", opts.Username, opts.Password)
	if ok {
		c.RegisterUser(user)
	}
	return ok
}

// authenticate returns the permissions of the connection with the server's id
// cid; nil permissions are all rights.
func (a *access) authenticate(cid uint64, tcp bool, user, token string) (*natsd.Permissions, bool) {
	sum := tokenHash(sha256.Sum256([]byte(token)))
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.bridges[cid]
	switch {
	case b == nil && !tcp:
		return nil, user == internalUser && equal(sum, a.internal)
	case b == nil || b.socket == clientSocket:
		if user != ClientUser || a.client == nil || !equal(sum, *a.client) {
			return nil, false
		}
		if b != nil {
			b.authenticated()
		}
		return clientPermissions(), true
	}
	// What runs inside is let in by its supervisor, with the same token and for less.
	id, inside := events.RPCUserID(user)
	if inside {
		user = id
	}
	// An unknown id is compared as well, so that the time tells nothing.
	want, known := a.granted[user]
	if !equal(sum, want) || !known || b.child != "" {
		return nil, false
	}
	conns := a.children[user]
	if conns == nil {
		conns = &childConn{bridges: make(map[*bridge]struct{}), gone: make(chan struct{})}
		a.children[user] = conns
	}
	// Those inside take no place of the supervisor's.
	if inside && conns.inside >= socket.MaxInside || !inside && len(conns.bridges)-conns.inside >= maxChildConns {
		return nil, false
	}
	conns.bridges[b] = struct{}{}
	b.child, b.inside = user, inside
	b.authenticated()
	if inside {
		conns.inside++
		return rpcPermissions(user), true
	}
	return childPermissions(user), true
}

func equal(a, b tokenHash) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

// childPermissions are the rights of child id. Its control subject lies below
// its own, so publishing there is denied by name. Answers go where a control
// message asked for them, once.
func childPermissions(id string) *natsd.Permissions {
	return &natsd.Permissions{
		Publish: &natsd.SubjectPermission{
			Allow: []string{events.ChildPermission(id)},
			Deny:  []string{events.ControlSubject(id), events.ControlSubject(id) + ".>"},
		},
		Subscribe: &natsd.SubjectPermission{
			Allow: []string{events.ChildPermission(id), events.ChildInbox(id) + ".>"},
		},
		Response: &natsd.ResponsePermission{MaxMsgs: 1, Expires: responseTime},
	}
}

// rpcPermissions are the rights of what runs inside child id: the six events in its
// name, what they need beside them, and an inbox.
func rpcPermissions(id string) *natsd.Permissions {
	publish := []string{events.RPCLogsSubject(id), events.RPCAckSubject(id, "*")}
	for _, k := range events.Kinds {
		publish = append(publish, events.RPCSubject(id, k))
	}
	return &natsd.Permissions{
		Publish:   &natsd.SubjectPermission{Allow: publish},
		Subscribe: &natsd.SubjectPermission{Allow: []string{events.RPCInbox(id) + ".>"}},
	}
}

// clientInboxes are the inboxes that a client may have; the first is that of
// other NATS tools.
var clientInboxes = []string{"_INBOX.", events.ClientInboxPrefix + "."}

// clientPermissions are the rights of a client.
func clientPermissions() *natsd.Permissions {
	publish := []string{
		events.FilesSubject(">"), events.AdminSubject(">"), events.AckPrefix + ".>", "$SRV.>",
	}
	for _, k := range []events.Kind{
		events.KindSpawn, events.KindQuery, events.KindCancel,
		events.KindListActive, events.KindCompletions, events.KindOutstanding,
	} {
		publish = append(publish, events.RequestSubject(k))
	}
	const api, feed = "$JS.API.", events.FeedStream
	publish = append(publish,
		api+"INFO", api+"STREAM.INFO."+feed, api+"STREAM.MSG.GET."+feed,
		api+"DIRECT.GET."+feed, api+"DIRECT.GET."+feed+".>",
		api+"CONSUMER.CREATE."+feed, api+"CONSUMER.CREATE."+feed+".>",
		api+"CONSUMER.NAMES."+feed, api+"CONSUMER.LIST."+feed,
		api+"CONSUMER.INFO."+feed+".*", api+"CONSUMER.DELETE."+feed+".*",
		api+"CONSUMER.MSG.NEXT."+feed+".*",
		"$JS.ACK."+feed+".>", "$JS.FC."+feed+".>",
	)
	subscribe := []string{events.FeedSubjects, events.ChildSubjectAll(events.ChildItem)}
	for _, inbox := range clientInboxes {
		subscribe = append(subscribe, inbox+">")
	}
	return &natsd.Permissions{
		Publish:   &natsd.SubjectPermission{Allow: publish},
		Subscribe: &natsd.SubjectPermission{Allow: subscribe},
	}
}

// ReplyAllowed reports whether an answer to principal, [ClientUser] or a child's
// id, may go to the subject reply. The server does not check the reply subject
// of a request, so an answer sent with our rights to whatever a request names
// would let its sender write to any subject: a record's or another child's.
func ReplyAllowed(principal, reply string) bool {
	if principal == ClientUser {
		for _, inbox := range clientInboxes {
			if strings.HasPrefix(reply, inbox) {
				return true
			}
		}
		return false
	}
	return events.ValidID(principal) &&
		(strings.HasPrefix(reply, events.ChildInbox(principal)+".") || strings.HasPrefix(reply, events.RPCInbox(principal)+"."))
}
