package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/bus/dial"
)

// floodMemory bounds what a daemon may ever have held in memory, in kB, however
// much its children print and publish.
const floodMemory = 512 << 10

// A child that prints without end delays no other child's result and loses
// nothing of theirs.
func TestPrintingFlood(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		flood := u.detach("--max-runtime", "60s", "--", "sh", "-c", "ulimit -f 4194304; yes 0123456789012345678901234567890123456789")
		require.True(t, u.eventually(func() bool { return u.outputOf(flood) > 64<<20 }))
		u.requireOthersWork()
		require.Zero(t, u.run("cancel", "--kill", flood).code)
		u.requireCalm()
		snap := list(t, u.run("query", "--json", flood).object(t), "snapshots")[0]
		require.Equal(t, "cancelled", snap["status"])
		require.EqualValues(t, u.outputOf(flood), snap["output_bytes"], "what was printed is told")
	})
}

// A child that speaks the bus itself, as fast as it can, blocks itself.
func TestPublishingFlood(t *testing.T) {
	u := newUser(t, os.Getuid())
	id := u.detach("--", "sleep", "617")
	require.True(t, u.eventually(func() bool { return u.running("sleep\x00617") == 1 }))
	nc := u.takeOver(id)
	defer nc.Close()

	item, err := events.Marshal(events.Item{Kind: events.ItemOutput, Stream: "stdout", Text: strings.Repeat("x", 8<<10)})
	require.NoError(t, err)
	beat, err := events.Marshal(events.Heartbeat{ID: id, Run: 1})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		sent := 0
		for ctx.Err() == nil {
			for report, body := range map[events.ChildReport][]byte{events.ChildItem: item, events.ChildHeartbeat: beat, events.ChildResult: beat} {
				if nc.Publish(events.ChildSubject(id, report), body) == nil { // else its buffer is full: try on
					sent++
				}
			}
		}
		done <- sent
	}()
	u.requireOthersWork()
	cancel()
	t.Logf("%d messages were published meanwhile", <-done)
	require.Zero(t, u.run("cancel", "--kill", id).code)
	u.requireCalm()
}

// A client that asks and does not read is cut; others are served meanwhile.
func TestStuckClientIsCut(t *testing.T) {
	u := newUser(t, os.Getuid())
	u.serveWith("--write-timeout", "300ms")
	require.Zero(t, u.run("spawn", "--", "sh", "-c", "head -c 200000 /dev/zero | tr '\\0' a").code)
	token, err := os.ReadFile(filepath.Join(u.home, "state/run/client.token"))
	require.NoError(t, err)
	conn, err := net.Dial("unix", filepath.Join(u.home, "state/run/bus.sock"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "CONNECT {\"user\":\"client\",\"pass\":%q,\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB _INBOX.stuck 1\r\n", strings.TrimSpace(string(token)))
	require.NoError(t, err)
	// It goes on asking until its own write fails, and never reads an answer.
	const body = "{}"
	ask := fmt.Appendf(nil, "PUB %s _INBOX.stuck %d\r\n%s\r\n", events.AdminSubject(events.AdminStatus), len(body), body)
	require.NoError(t, conn.SetWriteDeadline(time.Now().Add(deadline)))
	for err == nil {
		_, err = conn.Write(bytes.Repeat(ask, 50))
	}
	require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "it was not cut: %v", err)
	u.requireOthersWork()
	u.requireCalm()
}

// A supervisor that is not heard of is shown as that, and is not ended for it.
func TestHeartbeatLost(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.serveWith("--heartbeat", "100ms", "--heartbeat-lost", "1s")
		fifo := u.fifo("gate")
		id := u.detach("--", "sh", "-c", "cat gate")
		progress := func() map[string]any {
			p, _ := list(t, u.run("query", "--json", id).object(t), "snapshots")[0]["progress"].(map[string]any)
			return p
		}
		require.True(t, u.eventually(func() bool { return progress()["heartbeat_at"] != nil }))
		snap := list(t, u.run("query", "--json", id).object(t), "snapshots")[0]
		pid := int(snap["process"].(map[string]any)["pid"].(float64))
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		require.True(t, u.eventually(func() bool { return progress()["heartbeat_lost"] == true }))
		require.Contains(t, u.run("ps").stdout, "not heard of since")
		require.Equal(t, "running", list(t, u.run("query", "--json", id).object(t), "snapshots")[0]["status"])
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
		require.True(t, u.eventually(func() bool { return progress()["heartbeat_lost"] == nil }))
		feed(t, fifo, "late\n")
		require.Zero(t, u.run("wait", id).code)
		require.Equal(t, "late\n", u.run("logs", id).stdout)
	})
}

// A supervisor that does not answer the order to stop is killed with its tree,
// long before the grace of its command is over.
func TestUnansweredStopKills(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.serveWith("--control-timeout", "200ms", "--grace", "1h", "--cancel-timeout", "1m")
		id := u.detach("--", "sh", "-c", "trap '' TERM; sleep 618 & sleep 618")
		require.True(t, u.eventually(func() bool { return u.running("sleep\x00618") == 2 }))
		snap := list(t, u.run("query", "--json", id).object(t), "snapshots")[0]
		require.NoError(t, syscall.Kill(int(snap["process"].(map[string]any)["pid"].(float64)), syscall.SIGSTOP))
		o := u.run("cancel", "--json", id).object(t)
		require.Equal(t, "cancelled", list(t, o, "results")[0]["outcome"])
		require.Zero(t, u.running("sleep\x00618"))
	})
}

// A cancel answers at its deadline with what is left, and goes on.
func TestCancelReplyDeadline(t *testing.T) {
	u := newUser(t, os.Getuid())
	u.serveWith("--cancel-timeout", "300ms", "--grace", "1h")
	id := u.detach("--", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
	require.True(t, u.eventually(func() bool { return u.outputOf(id) == 6 }))
	r := u.run("cancel", "--json", id)
	require.Equal(t, 124, r.code, r.stderr)
	require.Equal(t, "draining", list(t, r.object(t), "results")[0]["outcome"])
	o := u.run("cancel", "--json", "--kill", id).object(t)
	require.Equal(t, "cancelled", list(t, o, "results")[0]["outcome"])
}

// Limits and deadlines are shown as they are in force, with their origin.
func TestLimitsAreShown(t *testing.T) {
	u := newUser(t, os.Getuid())
	u.serveWith("--grace", "3s", "--max-per-session", "5")
	daemon := u.doctor()
	limits, origins := daemon["limits"].(map[string]any), daemon["origins"].(map[string]any)
	for name, want := range map[string]struct {
		value  float64
		origin string
	}{
		"grace_ms": {3000, "flag --grace"}, "per_session": {5, "flag --max-per-session"},
		"total": {256, "default"}, "depth": {1, "default"}, "queue_length": {4096, "default"},
		"start_timeout_ms": {10_000, "default"}, "heartbeat_lost_ms": {30_000, "default"}, "max_runtime_ms": {4 * 3600_000, "default"},
	} {
		require.Equal(t, want.value, limits[name], name)
		require.Equal(t, want.origin, origins[name], name)
	}
	require.Equal(t, "queue", daemon["at_limit"])
	require.Len(t, origins, len(limits)+1, "and that of at_limit")
}

// Near the bound of its descriptors a daemon refuses spawns and goes on.
func TestDescriptorsAreKeptFree(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		serve := u.command(context.Background(), "serve")
		serve.Path, serve.Args = "/bin/sh", []string{"sh", "-c", `ulimit -n 280 && exec "$0" serve`, u.bin}
		u.start(serve)
		r := u.run("spawn", "--", "true")
		require.Equal(t, 125, r.code)
		require.Contains(t, r.stderr, "descriptors of the daemon are in use, and 256 are kept free")
		r = u.run("spawn", "--json", "--", "true")
		require.Contains(t, r.stdout+r.stderr, "host_files")
		require.Empty(t, list(t, u.run("ps", "-a", "--json").object(t), "subagents"))
	})
}

// Silence for longer than was asked for ends a command.
func TestIdleTimeout(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		r := u.run("spawn", "--json", "--idle-timeout", "300ms", "--", "sh", "-c", "echo begun; sleep 616")
		require.Equal(t, 124, r.code, r.stderr)
		o := r.object(t)
		require.Equal(t, "idle", o["reason"])
		require.Equal(t, "failed", o["status"])
		require.Equal(t, "begun\n", o["output"])
		require.Zero(t, u.running("sleep\x00616"))
	})
}

// On a full disk nothing new is accepted, questions are answered, what runs ends
// as far as it can, and all of it is written once there is space, by the same
// daemon.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	u := newUser(t, 0)
	state := filepath.Join(u.home, "state")
	require.NoError(t, os.Mkdir(state, 0o700))
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=64m,mode=0700"); errors.Is(err, unix.EPERM) {
		t.Skipf("needs the right to mount: %v", err)
	} else {
		require.NoError(t, err)
	}
	// Last in, first out: the daemon leaves, and with it the user's directory, only
	// after this; so it is ended here.
	t.Cleanup(func() {
		require.Zero(t, u.run("shutdown", "--kill").code)
		require.True(t, u.eventually(func() bool { return len(u.processes()) == 0 }))
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(state, "hayward.log"))
			t.Logf("the daemon's log:\n%s", log)
		}
		require.NoError(t, unix.Unmount(state, 0))
	})
	ended := u.detach("--", "echo", "ended")
	require.Zero(t, u.run("wait", ended).code)
	var live, gates []string
	for i := range 4 {
		gates = append(gates, u.fifo(fmt.Sprint("gate", i)))
		live = append(live, u.detach("--", "sh", "-c", fmt.Sprintf("echo early; cat gate%d >/dev/null; exit %d", i, i)))
	}
	for _, id := range live {
		require.True(t, u.eventually(func() bool { return u.outputOf(id) == 6 }))
	}
	pid := u.doctor()["pid"]

	filler := filepath.Join(state, "filler")
	fillDisk(t, state, filler)
	r := u.run("spawn", "--detach", "--", "true")
	require.Equal(t, 125, r.code, r.stderr)
	require.Contains(t, r.stderr, "free space on the disk of")
	r = u.run("spawn", "--json", "--detach", "--", "true")
	require.Contains(t, r.stdout+r.stderr, string(events.CodeStorageFull))
	require.Equal(t, "ended\n", u.run("logs", ended).stdout)
	require.Len(t, list(t, u.run("ps", "--json").object(t), "subagents"), len(live))
	for _, gate := range gates {
		feed(t, gate, "go\n")
	}
	require.True(t, u.eventually(func() bool { return u.running("sh") == 0 && u.running("hayward-child") == 0 }))
	require.Zero(t, u.run("query", ended).code, "questions are answered still")

	require.NoError(t, os.Remove(filler))
	require.True(t, u.eventually(func() bool {
		for _, s := range list(t, u.run(append([]string{"query", "--json"}, live...)...).object(t), "snapshots") {
			if s["state"] != "completed" {
				return false
			}
		}
		return true
	}))
	for i, s := range list(t, u.run(append([]string{"query", "--json"}, live...)...).object(t), "snapshots") {
		require.Equal(t, "early\n", s["output"])
		require.Nil(t, s["error"], "%v", s)
		require.Equal(t, float64(i), s["exit_code"], "%v", s)
	}
	require.Zero(t, u.run("spawn", "--", "true").code)
	require.Equal(t, pid, u.doctor()["pid"], "without a restart")
}

// A subagent that prints more than the disk holds ends by itself, its end is
// recorded although nobody makes space, and the daemon can leave.
func TestOutputDoesNotFillTheDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	u := newUser(t, 0)
	state := filepath.Join(u.home, "state")
	require.NoError(t, os.Mkdir(state, 0o700))
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=24m,mode=0700"); errors.Is(err, unix.EPERM) {
		t.Skipf("needs the right to mount: %v", err)
	} else {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		require.Zero(t, u.run("shutdown", "--kill").code)
		// A process that is ending is no longer seen before its files are closed.
		require.True(t, u.eventually(func() bool { return unix.Unmount(state, 0) == nil }))
	})
	id := u.detach("--", "sh", "-c", "head -c 30000000 /dev/zero")
	require.Equal(t, 1, u.run("wait", id).code)
	s := list(t, u.run("query", "--json", id).object(t), "snapshots")[0]
	require.Equal(t, "failed", s["status"], s["error"])
	require.Equal(t, "limit", s["reason"], s["error"])
	require.Equal(t, string(events.CodeStorageFull), s["error"].(map[string]any)["code"], s["error"])
	require.Greater(t, u.outputOf(id), int64(10_000_000))
	r := u.run("shutdown")
	require.Zero(t, r.code, r.stderr)
}

// fillDisk takes all of the disk, to the last page.
func fillDisk(t *testing.T, dir, filler string) {
	t.Helper()
	f, err := os.Create(filler)
	require.NoError(t, err)
	defer f.Close()
	for chunk := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(chunk)
	}
	require.ErrorIs(t, err, unix.ENOSPC, dir)
}

// serveWith starts a daemon with flags of its own.
func (u *user) serveWith(args ...string) {
	u.t.Helper()
	u.start(u.command(context.Background(), append([]string{"serve"}, args...)...))
}

// start starts a daemon and waits until clients can connect.
func (u *user) start(serve *exec.Cmd) {
	u.t.Helper()
	log, err := os.OpenFile(filepath.Join(u.home, "serve.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(u.t, err)
	defer log.Close()
	serve.Stdout, serve.Stderr = log, log
	require.NoError(u.t, serve.Start())
	u.t.Cleanup(func() { // before the user leaves
		require.Zero(u.t, u.run("shutdown", "--kill").code)
		require.NoError(u.t, serve.Wait())
		if u.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			u.t.Logf("the daemon's log:\n%s", text)
		}
	})
	socket := filepath.Join(u.home, "state/run/bus.sock")
	require.True(u.t, u.eventually(func() bool {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		return c.Close() == nil
	}))
}

// outputOf is the size of a subagent's stdout.
func (u *user) outputOf(id string) int64 {
	st, err := os.Stat(filepath.Join(u.home, "state/subagents", id, "stdout.log"))
	if err != nil {
		return 0
	}
	return st.Size()
}

// requireOthersWork runs subagents whose results must come whole.
func (u *user) requireOthersWork() {
	u.t.Helper()
	for i := range 5 {
		begin := time.Now()
		r := u.run("spawn", "--json", "--", "sh", "-c", fmt.Sprintf("seq 1000; echo %d", i))
		require.Zero(u.t, r.code, r.stderr)
		require.True(u.t, strings.HasSuffix(r.object(u.t)["output"].(string), fmt.Sprintf("1000\n%d\n", i)))
		u.t.Logf("another's result took %v", time.Since(begin).Round(time.Millisecond))
	}
}

// requireCalm requires that the daemon dropped nothing and stayed small.
func (u *user) requireCalm() {
	u.t.Helper()
	daemon := u.doctor()
	require.Zero(u.t, daemon["dropped_messages"])
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", int(daemon["pid"].(float64))))
	require.NoError(u.t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			require.NoError(u.t, err)
			u.t.Logf("the daemon's peak is %d kB", kb)
			require.Less(u.t, kb, floodMemory)
			return
		}
	}
	u.t.Fatal("no VmHWM")
}

// takeOver returns a connection with the rights of a running child. Its token is
// known to nobody, so the daemon is restarted on a record with another one.
func (u *user) takeOver(id string) *nats.Conn {
	u.t.Helper()
	const token = "known"
	u.killDaemon()
	u.withBucket(func(ctx context.Context, kv jetstream.KeyValue) {
		entry, err := kv.Get(ctx, id)
		require.NoError(u.t, err)
		var r events.Record
		require.NoError(u.t, events.DecodeRecord(entry.Value(), &r))
		r.Seq++
		r.TokenHash = bus.HashToken(token)
		value, err := events.MarshalRecord(r)
		require.NoError(u.t, err)
		_, err = kv.Update(ctx, id, value, entry.Revision())
		require.NoError(u.t, err)
	})
	require.Zero(u.t, u.run("ps").code)
	url, options := dial.Options(filepath.Join(u.home, "state/bus/bus.sock"), id, token, events.ChildInbox(id))
	nc, err := nats.Connect(url, options...)
	require.NoError(u.t, err)
	return nc
}
