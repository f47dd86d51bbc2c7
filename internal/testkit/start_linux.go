package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
)

// ChildOptions say how [StartChild] starts a supervisor.
type ChildOptions struct {
	// Binary is the supervisor; default [BareChild].
	Binary string
	// Spec is what it is told. ID, Cwd and HeartbeatMS have defaults.
	Spec events.ChildSpec
	// BusDir is the directory of the children's socket; default an empty one.
	BusDir string
	// Stdout takes the place of stdout.log.
	Stdout *os.File
	// Sys holds namespaces and credentials.
	Sys *syscall.SysProcAttr
	// Plan, Start, Ruleset and Filter are the constructor's; default /dev/null.
	Plan, Start, Ruleset, Filter *os.File
}

// ChildProcess is a supervisor under test.
type ChildProcess struct {
	ID  string
	PID int
	// Dir is its run directory.
	Dir string
	// Records are its status records; closed at the end of the status pipe.
	Records <-chan handoff.Record
	// Ended is closed when the process has ended and was reaped.
	Ended <-chan struct{}

	t     testing.TB
	proc  *os.Process
	state *os.ProcessState // set before Ended is closed
	seen  []handoff.Record
}

// StartChild starts a supervisor with an empty environment and the descriptors
// of internal/handoff. It is killed at the end of the test if it is still there.
func StartChild(t testing.TB, o ChildOptions) *ChildProcess {
	t.Helper()
	c := &ChildProcess{t: t, Dir: Dir(t)}
	if o.Spec.ID == "" {
		o.Spec.ID = events.NewID()
	}
	c.ID = o.Spec.ID
	if o.Spec.Cwd == "" {
		o.Spec.Cwd = "/"
	}
	if o.Spec.HeartbeatMS == 0 {
		o.Spec.HeartbeatMS = 50
	}
	if o.Binary == "" {
		o.Binary = BareChild(t)
	}
	if o.BusDir == "" {
		o.BusDir = Dir(t)
	}
	status, files, err := c.files(o)
	if err == nil {
		c.proc, err = os.StartProcess(o.Binary, []string{"hayward-child"}, &os.ProcAttr{Env: handoff.Environment(), Files: files, Sys: o.Sys})
	}
	for _, f := range files {
		if f != o.Plan && f != o.Start && f != o.Ruleset && f != o.Filter && f != o.Stdout {
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		t.Fatalf("start %s: %v", o.Binary, err)
	}
	c.PID = c.proc.Pid
	c.watch(status)
	return c
}

// files opens everything that a child inherits, in the order of its descriptors.
func (c *ChildProcess) files(o ChildOptions) (status *os.File, files []*os.File, err error) {
	open := func(f *os.File, e error) {
		if e != nil {
			err = errors.Join(err, e)
			return
		}
		files = append(files, f)
	}
	give := func(f *os.File) {
		if f == nil {
			open(os.OpenFile(os.DevNull, os.O_RDWR, 0))
			return
		}
		files = append(files, f)
	}
	spec, e := events.MarshalRecord(o.Spec)
	if e != nil {
		return nil, nil, e
	}
	// A file of its own outside the run directory: the credential is in it.
	specFile := filepath.Join(c.t.TempDir(), "spec")
	if e := os.WriteFile(specFile, spec, 0o600); e != nil {
		return nil, nil, e
	}
	status, statusEnd, e := os.Pipe()
	if e != nil {
		return nil, nil, e
	}
	log := func(name string) (*os.File, error) {
		return os.OpenFile(filepath.Join(c.Dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	give(nil)
	give(nil)
	open(log("child.log"))
	give(o.Plan)
	give(o.Start)
	files = append(files, statusEnd)
	open(os.Open(specFile))
	open(os.OpenFile(o.BusDir, oPath, 0))
	open(log("report.json"))
	if o.Stdout != nil {
		give(o.Stdout)
	} else {
		open(log("stdout.log"))
	}
	open(log("stderr.log"))
	open(log("transcript.jsonl"))
	give(o.Ruleset)
	give(o.Filter)
	if err == nil && len(files) != handoff.FDLast+1 {
		err = fmt.Errorf("%d descriptors for a child, not %d", len(files), handoff.FDLast+1)
	}
	return status, files, err
}

// oPath is O_PATH.
const oPath = 0x200000

func (c *ChildProcess) watch(status *os.File) {
	// More than a child ever sends: the reader never waits for the test.
	records := make(chan handoff.Record, 64)
	ended, read := make(chan struct{}), make(chan struct{})
	c.Records, c.Ended = records, ended
	go func() {
		defer close(read)
		defer close(records)
		var b [handoff.RecordSize]byte
		for {
			if _, err := io.ReadFull(status, b[:]); err != nil {
				return
			}
			records <- handoff.Decode(b[:])
		}
	}()
	go func() {
		defer close(ended)
		state, err := c.proc.Wait()
		if err != nil {
			c.t.Errorf("wait for child %d: %v", c.PID, err)
			return
		}
		c.state = state
	}()
	c.t.Cleanup(func() {
		select {
		case <-ended:
		default:
			if err := c.proc.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				c.t.Errorf("kill child %d: %v", c.PID, err)
			}
			<-ended
		}
		// Whoever holds the other end is not waited for.
		if err := status.Close(); err != nil {
			c.t.Errorf("close the status pipe: %v", err)
		}
		<-read
		if c.t.Failed() {
			if log, err := os.ReadFile(filepath.Join(c.Dir, "child.log")); err == nil && len(log) > 0 {
				c.t.Logf("child %d wrote to stderr: %s", c.PID, log)
			}
		}
	})
}

// Record waits for the record of a step and returns it.
func (c *ChildProcess) Record(step handoff.Step) handoff.Record {
	c.t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for {
		select {
		case r, ok := <-c.Records:
			if !ok {
				c.t.Fatalf("the status pipe ended without the record of step %v; before: %v", step, c.seen)
			}
			c.seen = append(c.seen, r)
			if r.Step == step {
				return r
			}
		case <-deadline.C:
			c.t.Fatalf("no record of step %v; before: %v", step, c.seen)
		}
	}
}

// Wait waits for the end of the process.
func (c *ChildProcess) Wait() *os.ProcessState {
	c.t.Helper()
	select {
	case <-c.Ended:
	case <-time.After(Patience):
		c.t.Fatalf("child %d has not ended", c.PID)
	}
	return c.state
}

// Signal sends a signal to the supervisor.
func (c *ChildProcess) Signal(sig os.Signal) {
	c.t.Helper()
	if err := c.proc.Signal(sig); err != nil {
		c.t.Fatalf("signal child %d: %v", c.PID, err)
	}
}

// Report waits for the end and returns report.json.
func (c *ChildProcess) Report() events.Report {
	c.t.Helper()
	state := c.Wait()
	body := c.File("report.json")
	var r events.Report
	if err := events.DecodeRecord(body, &r); err != nil {
		c.t.Fatalf("report.json of child %d (%v): %v", c.PID, state, err)
	}
	if r.ID != c.ID || !bytes.HasSuffix(body, []byte("}\n")) || bytes.Count(body, []byte("\n")) != 1 {
		c.t.Fatalf("report.json is not one line about %s: %s", c.ID, body)
	}
	return r
}

// File returns a file of the run directory.
func (c *ChildProcess) File(name string) []byte {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// Transcript returns the items of transcript.jsonl.
func (c *ChildProcess) Transcript() []events.Item {
	c.t.Helper()
	var items []events.Item
	for line := range bytes.Lines(c.File("transcript.jsonl")) {
		var item events.Item
		if err := events.DecodeRecord(line, &item); err != nil {
			c.t.Fatalf("transcript: %v: %s", err, line)
		}
		items = append(items, item)
	}
	return items
}
