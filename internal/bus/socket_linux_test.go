package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/socket"
)

// dialEnv makes the test binary a process that connects to the socket it names
// and reports what came of it.
const dialEnv = "HAYWARD_TEST_DIAL"

func dialAsOtherUser() bool {
	socket := os.Getenv(dialEnv)
	if socket == "" {
		return false
	}
	conn, err := net.DialTimeout("unix", socket, deadline)
	if err != nil {
		fmt.Println("dial:", err)
		return true
	}
	n, err := conn.Read(make([]byte, 1))
	fmt.Println("read:", n, errors.Is(err, io.EOF))
	return true
}

func runAs(t *testing.T, uid uint32, socket string) string {
	t.Helper()
	// The test binary lies in a directory of root's own.
	exe := filepath.Join(filepath.Dir(filepath.Dir(socket)), "helper")
	data, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(exe, data, 0o755))
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = []string{dialEnv + "=" + socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

func TestOtherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a process of another user")
	}
	f := start(t, nil)
	f.SetClientToken("secret")
	require.NoError(t, os.Chmod(filepath.Dir(f.client), 0o711))

	require.Contains(t, runAs(t, 65534, f.client), "permission denied", "the socket's mode keeps it out")
	// Even where the mode lets it in, its uid does not: it gets the end of file
	// and not a byte.
	require.NoError(t, os.Chmod(f.client, 0o666))
	require.Equal(t, "read: 0 true", runAs(t, 65534, f.client))
	require.NotEmpty(t, f.logs.FilterMessage("refuse a connection").All())
	require.Equal(t, "read: 1 false", runAs(t, 0, f.client), "the same uid is let in")
}

func TestSocketsArePrivate(t *testing.T) {
	f := start(t, nil)
	for _, path := range []string{f.client, filepath.Join(f.children(), SocketName)} {
		st, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, os.ModeSocket|0o600, st.Mode(), path)
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1, "nothing but the socket is left in %s", filepath.Dir(path))
		st, err = os.Lstat(filepath.Dir(path))
		require.NoError(t, err)
		require.Equal(t, os.ModeDir|0o700, st.Mode())
	}
	require.Empty(t, f.TCPAddr())
}

// The server has nothing to warn of in a plain life.
func TestQuietLife(t *testing.T) {
	f := start(t, nil)
	_, p := f.child(t)
	require.NoError(t, p.FlushTimeout(deadline))
	require.NoError(t, f.StoreHealth().Err())
	require.NoError(t, f.ReopenStore(t.Context()))
	f.shutdown(t)
	for _, e := range f.logs.All() {
		require.Lessf(t, e.Level, zap.WarnLevel, "%s", e.Message)
	}
}

func TestLongSocketPath(t *testing.T) {
	f := start(t, nil)
	f.SetClientToken("secret")
	long := filepath.Join(f.dir, strings.Repeat("d", 100), strings.Repeat("e", 100), "bus.sock")
	require.NoError(t, f.ServeClients(long))
	p, err := connect(t, long, ClientUser, "secret", events.ClientInboxPrefix)
	require.NoError(t, err)
	require.NoError(t, p.FlushTimeout(deadline))
}

func TestDirectoryOthersCanWriteIsRefused(t *testing.T) {
	f := start(t, nil)
	open := filepath.Join(f.dir, "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	require.ErrorContains(t, f.ServeClients(filepath.Join(open, "bus.sock")), "others may replace")
	require.NoError(t, os.Chmod(open, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(open, "bus.sock"), []byte("mine"), 0o600))
	require.ErrorContains(t, f.ServeClients(filepath.Join(open, "bus.sock")), "no socket")
}

// A child holds a descriptor of the socket's directory. It comes back through
// it after the server was restarted, also when the socket of a killed server is
// still there.
func TestChildReconnectsThroughItsDescriptor(t *testing.T) {
	f := start(t, nil)
	id := events.NewID()
	f.Grant(id, HashToken("t"))
	dir, err := os.Open(f.children())
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.Close()) }()
	before, err := dir.Stat()
	require.NoError(t, err)

	p, err := connect(t, socket.InDir(int(dir.Fd()), SocketName), id, "t", events.ChildInbox(id))
	require.NoError(t, err)
	f.shutdown(t)
	await(t, "the disconnect", p.disconnected)

	// What a killed server leaves.
	stale, err := net.Listen("unix", filepath.Join(f.children(), SocketName))
	require.NoError(t, err)
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())

	again := startIn(t, f.dir, nil)
	again.Grant(id, HashToken("t"))
	await(t, "the reconnect", p.reconnected)
	require.NoError(t, p.FlushTimeout(deadline))
	after, err := os.Stat(f.children())
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "the directory is the same")
}

func TestTCP(t *testing.T) {
	f := start(t, func(o *Options) { o.TCP = "127.0.0.1:0" })
	f.SetClientToken("secret")
	id := events.NewID()
	f.Grant(id, HashToken("right"))
	url := "nats://" + f.TCPAddr()

	nc, err := nats.Connect(url, nats.UserInfo(ClientUser, "secret"))
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, nc.FlushTimeout(deadline))
	for user, token := range map[string]string{id: "right", internalUser: f.internal, ClientUser: "wrong", "": ""} {
		_, err := nats.Connect(url, nats.UserInfo(user, token))
		require.ErrorIsf(t, err, nats.ErrAuthorization, "user %q", user)
	}
}

func TestTCPPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	_, err = Start(t.Context(), Options{StoreDir: t.TempDir(), TCP: l.Addr().String()})
	require.ErrorContains(t, err, "address already in use")
	_, err = Start(t.Context(), Options{StoreDir: t.TempDir(), TCP: "127.0.0.1:http"})
	require.ErrorContains(t, err, "not a number")
}

func TestStoreThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Start(t.Context(), Options{StoreDir: file})
	require.Error(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jetstream"), nil, 0o600))
	_, err = Start(t.Context(), Options{StoreDir: dir})
	require.ErrorContains(t, err, "JetStream")
}

// Garbage instead of the protocol ends the connection and nothing else.
func TestGarbage(t *testing.T) {
	f := start(t, nil)
	_, good := f.child(t)
	for _, garbage := range []string{"\x00\xff\xfe", "CONNECT {", "PUB x 99999999999\r\n", strings.Repeat("A", 1<<20), "CONNECT {}\r\n", ""} {
		conn, err := net.DialTimeout("unix", filepath.Join(f.children(), SocketName), deadline)
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(deadline)))
		// The server may close before it took all of it.
		_, writeErr := io.WriteString(conn, garbage+"\r\n")
		_, err = io.ReadAll(conn)
		require.Falsef(t, errors.Is(err, os.ErrDeadlineExceeded), "%.20q: the server keeps it open (write: %v)", garbage, writeErr)
		require.NoError(t, conn.Close())
	}
	require.NoError(t, good.FlushTimeout(deadline))
}

func TestGreetingIsWhatTheBridgeReads(t *testing.T) {
	f := start(t, nil)
	conn, err := f.nats.InProcessConn()
	require.NoError(t, err)
	b := &bridge{server: conn}
	line, err := b.greeting()
	require.NoError(t, err)
	require.NotZero(t, b.cid)
	var info map[string]any
	require.NoError(t, json.Unmarshal(line[len("INFO "):], &info))
	require.EqualValues(t, b.cid, info["client_id"])
	require.NoError(t, conn.Close())
}
