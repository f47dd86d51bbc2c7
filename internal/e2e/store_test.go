package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus"
)

// A store that was damaged while no daemon was there loses nothing silently:
// every record is back with its output, or it is named.
func TestDamagedStore(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(*damaged)
		// names are the ids that must be named as damaged. Nil: none.
		names func(*damaged) []string
	}{
		"records' block cut":     {damage: func(d *damaged) { d.cut(d.block("KV_" + events.Bucket)) }},
		"records' block flipped": {damage: func(d *damaged) { d.flip(d.block("KV_" + events.Bucket)) }},
		"records' block removed": {damage: func(d *damaged) { d.remove(d.block("KV_" + events.Bucket)) }},
		"records' meta.inf cut":  {damage: func(d *damaged) { d.cut(d.stream("KV_"+events.Bucket, "meta.inf")) }},
		"records' meta.sum gone": {damage: func(d *damaged) { d.remove(d.stream("KV_"+events.Bucket, "meta.sum")) }},
		"feed's block cut":       {damage: func(d *damaged) { d.cut(d.block(events.FeedStream)) }},
		"feed's block flipped":   {damage: func(d *damaged) { d.flip(d.block(events.FeedStream)) }},
		"feed's meta.inf cut":    {damage: func(d *damaged) { d.cut(d.stream(events.FeedStream, "meta.inf")) }},
		"an end's result.json":   {damage: func(d *damaged) { d.cut(d.runFile(d.ended[1], "result.json")) }},
		"an end's report.json":   {damage: func(d *damaged) { d.cut(d.runFile(d.ended[1], "report.json")) }},
		"an end's spec.json": {
			damage: func(d *damaged) { d.cut(d.runFile(d.ended[1], "spec.json")) },
			names:  func(d *damaged) []string { return d.ended[1:2] },
		},
		"a live one's record.json": {damage: func(d *damaged) { d.cut(d.runFile(d.live[0], "record.json")) }},
		"a live one's spec.json": {
			damage: func(d *damaged) { d.cut(d.runFile(d.live[0], "spec.json")) },
			names:  func(d *damaged) []string { return d.live[:1] },
		},
		"all blocks and a spec.json": {
			damage: func(d *damaged) {
				d.remove(d.block("KV_" + events.Bucket))
				d.cut(d.runFile(d.live[0], "spec.json"))
			},
			names: func(d *damaged) []string { return d.live[:1] },
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDamaged(t, newUser(t, os.Getuid()))
			d.killDaemon()
			c.damage(d)
			require.Zero(t, d.run("ps").code)
			daemon := d.doctor()
			var named []string
			if c.names != nil {
				named = c.names(d)
			}
			require.ElementsMatch(t, named, strs(daemon["damaged"]))
			d.requireAll()
		})
	}
}

// A child that ended while no daemon was there and whose report is torn has
// failed, with its output and the reason.
func TestTornReport(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		d := newDamaged(t, u)
		pid := int(d.snapshot(d.live[0])["process"].(map[string]any)["pid"].(float64))
		d.killDaemon()
		feed(t, d.gates[0], "late 0\n")
		require.True(t, d.eventually(func() bool { return !d.alive(pid) }))
		d.cut(d.runFile(d.live[0], "report.json"))
		require.Zero(t, d.run("wait", d.live[0]).code&^1)
		snap := d.snapshot(d.live[0])
		require.Equal(t, "failed", snap["status"])
		require.Equal(t, "crash", snap["reason"])
		require.Equal(t, "early 0\nlate 0\n", snap["output"])
		require.Contains(t, snap["error"].(map[string]any)["message"], "report.json")
		d.live, d.gates = d.live[1:], d.gates[1:]
		d.first = 1
		d.requireAll()
	})
}

// Records that are gone as a whole while their run directories are there are
// damage that a person has to know of, not a new beginning.
func TestMissingBucket(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		d := newDamaged(t, u)
		d.killDaemon()
		aside := filepath.Join(d.home, "aside")
		bucket := d.stream("KV_"+events.Bucket, "")
		require.NoError(t, os.Rename(bucket, aside))
		r := d.run("ps")
		require.Equal(t, 125, r.code)
		require.Contains(t, r.stderr, "is missing")
		require.Contains(t, r.stderr, "restore the store's directory from a copy, or move "+filepath.Join(d.home, "state/subagents")+" away")
		r = d.run("ps", "--json")
		require.Contains(t, r.stdout+r.stderr, string(events.CodeStoreDamaged))

		require.NoError(t, os.Rename(aside, bucket))
		d.requireAll()
	})
}

// An id that was named as damaged is taken: a spawn that uses it again is told
// so, and the daemon goes on.
func TestDamagedIDIsTaken(t *testing.T) {
	d := newDamaged(t, newUser(t, os.Getuid()))
	id := d.ended[0]
	d.killDaemon()
	d.spoilRecord(id)
	require.NoError(t, os.RemoveAll(d.runFile(id, "")))
	require.Zero(t, d.run("ps").code)
	daemon := d.doctor()
	require.Equal(t, []string{id}, strs(daemon["damaged"]))
	r := d.run("spawn", "--detach", "--id", id, "--", "true")
	require.Equal(t, 125, r.code, r.stderr)
	require.Contains(t, r.stderr, "the id is taken")
	require.Contains(t, d.run("query", id).stderr, "its record is damaged")
	require.Equal(t, daemon["pid"], d.doctor()["pid"], "the daemon goes on")
	d.ended = d.ended[1:]
	d.requireAll()
}

// damaged is a user whose subagents ended or wait at a gate each.
type damaged struct {
	*user
	ended, live, gates []string
	// first is the number of the first of live.
	first  int
	random *rand.Rand
}

func newDamaged(t *testing.T, u *user) *damaged {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := &damaged{user: u, random: rand.New(rand.NewPCG(seed, 0))}
	t.Cleanup(func() { d.run("ps") }) // so that there is a daemon to end the live ones
	for i := range 4 {
		d.ended = append(d.ended, d.detach("--", "echo", fmt.Sprint("ended ", i)))
	}
	require.Zero(t, d.run(append([]string{"wait"}, d.ended...)...).code)
	for i := range 2 {
		d.gates = append(d.gates, d.fifo(fmt.Sprint("gate", i)))
		d.live = append(d.live, d.detach("--", "sh", "-c", fmt.Sprintf("echo early %d; cat gate%d", i, i)))
	}
	for i, id := range d.live {
		require.True(t, d.eventually(func() bool { return d.run("logs", id).stdout == fmt.Sprintf("early %d\n", i) }))
	}
	return d
}

// requireAll requires every subagent to be there, and the live ones to end with
// all of their output.
func (d *damaged) requireAll() {
	d.t.Helper()
	for _, id := range d.ended {
		snap := d.snapshot(id)
		require.Equal(d.t, "completed", snap["status"], "%v", snap)
		require.True(d.t, strings.HasPrefix(snap["output"].(string), "ended "), "%v", snap["output"])
	}
	for i, id := range d.live {
		snap := d.snapshot(id)
		require.Equal(d.t, "running", snap["status"], "%v", snap)
		feed(d.t, d.gates[i], "late\n")
		require.Zero(d.t, d.run("wait", id).code)
		snap = d.snapshot(id)
		require.Equal(d.t, "completed", snap["status"], "%v", snap)
		require.Equal(d.t, fmt.Sprintf("early %d\nlate\n", i+d.first), snap["output"])
	}
}

// snapshot returns what is known of a subagent.
func (d *damaged) snapshot(id string) map[string]any {
	d.t.Helper()
	r := d.run("query", "--json", id)
	require.LessOrEqual(d.t, r.code, 1, "%s %s", r.stdout, r.stderr) // 1: it failed
	return list(d.t, r.object(d.t), "snapshots")[0]
}

// doctor returns what doctor says of the daemon.
func (u *user) doctor() map[string]any {
	u.t.Helper()
	r := u.run("doctor", "--json")
	o := r.object(u.t)
	daemon, ok := o["daemon"].(map[string]any)
	require.True(u.t, ok, "no daemon: %s", r.stdout)
	return daemon
}

// killDaemon ends the daemon as a crash would and waits until it is gone.
func (u *user) killDaemon() {
	u.t.Helper()
	pid := int(u.doctor()["pid"].(float64))
	require.NoError(u.t, syscall.Kill(pid, syscall.SIGKILL))
	require.True(u.t, u.eventually(func() bool { return u.daemons() == 0 }))
}

// alive reports whether a process runs; a zombie does not.
func (u *user) alive(pid int) bool {
	for _, p := range u.processes() {
		if strings.HasPrefix(p, fmt.Sprint(pid, " ")) {
			return true
		}
	}
	return false
}

// stream is a file of a stream, block its only block.
func (d *damaged) stream(name, file string) string {
	return filepath.Join(d.home, "state/jetstream/jetstream/$G/streams", name, file)
}

func (d *damaged) block(stream string) string {
	blocks, err := filepath.Glob(d.stream(stream, "msgs/*.blk"))
	require.NoError(d.t, err)
	require.Len(d.t, blocks, 1)
	return blocks[0]
}

// runFile is a file of a run directory.
func (d *damaged) runFile(id, file string) string {
	return filepath.Join(d.home, "state/subagents", id, file)
}

// cut shortens a file at a random byte, flip changes one.
func (d *damaged) cut(path string) {
	st, err := os.Stat(path)
	require.NoError(d.t, err)
	at := d.random.Int64N(st.Size())
	d.t.Logf("%s cut at %d of %d", path, at, st.Size())
	require.NoError(d.t, os.Truncate(path, at))
}

func (d *damaged) flip(path string) {
	b, err := os.ReadFile(path)
	require.NoError(d.t, err)
	at, bit := d.random.IntN(len(b)), byte(1)<<d.random.IntN(8)
	d.t.Logf("%s: byte %d of %d, %#x changed by %#x", path, at, len(b), b[at], bit)
	b[at] ^= bit
	require.NoError(d.t, os.WriteFile(path, b, 0o600))
}

// spoilRecord puts something that is no record in place of one.
func (d *damaged) spoilRecord(id string) {
	d.withBucket(func(ctx context.Context, kv jetstream.KeyValue) {
		_, err := kv.Put(ctx, id, []byte("{torn"))
		require.NoError(d.t, err)
	})
}

// withBucket opens the records of a user whose daemon is down. The files it
// leaves are the test's, so the user has to be the same.
func (u *user) withBucket(f func(context.Context, jetstream.KeyValue)) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	server, err := bus.Start(ctx, bus.Options{StoreDir: filepath.Join(u.home, "state/jetstream")})
	require.NoError(u.t, err)
	defer func() { require.NoError(u.t, server.Shutdown(ctx)) }()
	nc, err := server.Conn("test")
	require.NoError(u.t, err)
	js, err := jetstream.New(nc)
	require.NoError(u.t, err)
	kv, err := js.KeyValue(ctx, events.Bucket)
	require.NoError(u.t, err)
	f(ctx, kv)
}

func (d *damaged) remove(path string) { require.NoError(d.t, os.Remove(path)) }

func strs(list any) []string {
	items, _ := list.([]any) // absent: none
	var out []string
	for _, i := range items {
		out = append(out, i.(string))
	}
	slices.Sort(out)
	return out
}
