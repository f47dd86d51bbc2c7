package spawner

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/deadlines"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// told is what a spawner told, as it came.
type told struct {
	started chan events.SandboxReport
	ended   chan events.End
	// onEnded is called before an end is passed on.
	onEnded func(id string)
}

func (told) Forked(string, int, events.Fork) {}

func (o told) Started(_ string, _ int, r events.SandboxReport) { o.started <- r }

func (o told) Ended(id string, _ int, e events.End) {
	o.onEnded(id)
	o.ended <- e
}

// open admits everybody.
type open struct{}

func (open) Grant(string, string) {}
func (open) Revoke(string)        {}
func (open) Drained(string) <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// answers is a child that answers every control message once it is closed.
type answers chan struct{}

func (a answers) Control(ctx context.Context, _ string, _ events.Control) (events.ControlReply, error) {
	select {
	case <-a:
		return events.ControlReply{OK: true}, nil
	case <-ctx.Done():
		return events.ControlReply{}, ctx.Err()
	}
}

// adoption is a spawner and the record of a child that an earlier one forked.
type adoption struct {
	*Spawner
	told
	control answers
	record  events.Record
	dir     *rundir.Dir
	// end ends the process of the record by itself.
	end io.Closer
}

// newAdoption starts a process that ends with its stdin.
func newAdoption(t *testing.T) *adoption {
	root, err := rundir.Open(filepath.Join(t.TempDir(), "subagents"))
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	a := &adoption{
		told:    told{make(chan events.SandboxReport, 1), make(chan events.End, 1), nil},
		control: make(answers),
	}
	id := events.NewID()
	a.dir, err = root.Create(id)
	require.NoError(t, err)
	t.Cleanup(func() { a.dir.Close() })
	cmd := exec.Command("cat")
	a.end, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		a.end.Close()
		<-reaped
	})
	process, err := identityOf(cmd.Process.Pid)
	require.NoError(t, err)
	a.record = events.Record{
		Schema: events.RecordSchema, ID: id, Run: 1, State: events.StatePending, Status: events.StatusInitializing,
		Process: &process,
	}
	set := deadlines.Default()
	set.KillProof = 50 * time.Millisecond
	a.onEnded = func(id string) {
		require.Nil(t, a.child(id), "its id is not free yet, so it could not be started again")
	}
	a.Spawner = New(Config{Root: root, Deadlines: set, Credentials: open{}, Controller: a.control, Observer: a.told})
	t.Cleanup(a.Spawner.Close)
	return a
}

func (a *adoption) adopt() {
	a.Adopt(events.Spec{ID: a.record.ID, Run: a.record.Run}, a.record)
}

// ran makes what a supervisor leaves before it starts its command.
func (a *adoption) ran(t *testing.T) {
	f, err := a.dir.OpenAppend(rundir.TranscriptFile)
	require.NoError(t, err)
	_, err = f.WriteString("{}\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// letGo makes the mark of a child that was let go.
func (a *adoption) letGo(t *testing.T, report events.SandboxReport) {
	body, err := events.MarshalRecord(report)
	require.NoError(t, err)
	f, err := a.dir.OpenAppend(releasedFile)
	require.NoError(t, err)
	_, err = f.Write(body)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		require.FailNow(t, "nothing was told")
	}
	return v
}

// A pid that belongs to somebody else by now is neither watched nor killed.
func TestAdoptNeverTouchesAStranger(t *testing.T) {
	for name, change := range map[string]func(*events.Process){
		"another start time":    func(p *events.Process) { p.StartTime-- },
		"another boot":          func(p *events.Process) { p.BootID = "00000000-0000-4000-8000-000000000000" },
		"another PID namespace": func(p *events.Process) { p.PIDNamespace++ },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdoption(t)
			a.ran(t)
			change(a.record.Process)
			a.record.State = events.StateActive
			a.adopt()
			a.Stop(a.record.ID, events.Stop{Reason: events.ReasonUser, Kill: true})
			end := receive(t, a.ended)
			require.True(t, end.Status.Terminal())
			require.False(t, end.NotRun)
			a.Spawner.Close()
			require.False(t, gone(a.record.Process.PID), "the stranger was killed")
		})
	}
}

// A child that was not let go may still be there when it is adopted: it is on
// its way out and is started again.
func TestAdoptStartsAgainWhatWasNotLetGo(t *testing.T) {
	a := newAdoption(t)
	a.adopt()
	require.NoError(t, a.end.Close())
	end := receive(t, a.ended)
	require.True(t, end.NotRun)
	require.Equal(t, events.ReasonCrash, end.Reason)
}

// One that was marked and not let go, because its coordinator died in between,
// ran nothing either.
func TestAdoptStartsAgainWhatWasOnlyMarked(t *testing.T) {
	a := newAdoption(t)
	a.letGo(t, events.SandboxReport{Profile: "workspace"})
	for _, name := range []string{rundir.TranscriptFile, rundir.ReportFile} {
		f, err := a.dir.OpenAppend(name)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	a.adopt()
	require.NoError(t, a.end.Close())
	require.True(t, receive(t, a.ended).NotRun)
}

// A child that was let go and vanished may have run, so it is not started again.
func TestAdoptDoesNotStartAgainWhatRan(t *testing.T) {
	a := newAdoption(t)
	a.letGo(t, events.SandboxReport{Profile: "workspace"})
	a.ran(t)
	a.adopt()
	require.NoError(t, a.end.Close())
	end := receive(t, a.ended)
	require.False(t, end.NotRun)
	require.Equal(t, events.StatusFailed, end.Status)
	require.Equal(t, events.ReasonCrash, end.Reason)
	require.Empty(t, a.started, "nothing says that it ran")
}

// A start that the earlier coordinator did not live to record is told once the
// child answers, with the sandbox that it was let go under.
func TestAdoptTellsOfAStart(t *testing.T) {
	a := newAdoption(t)
	want := events.SandboxReport{Profile: "workspace", Requested: "workspace", Active: true}
	a.letGo(t, want)
	a.ran(t)
	a.adopt()
	close(a.control)
	require.Equal(t, want, receive(t, a.started))
	a.Stop(a.record.ID, events.Stop{Reason: events.ReasonUser, Kill: true})
	require.Equal(t, events.StatusCancelled, receive(t, a.ended).Status)
	require.Empty(t, a.started)
}

// Without a mark that can be read, the sandbox is not claimed to be active.
func TestAdoptDoesNotClaimASandbox(t *testing.T) {
	a := newAdoption(t)
	f, err := a.dir.OpenAppend(releasedFile)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	a.adopt()
	close(a.control)
	report := receive(t, a.started)
	require.False(t, report.Active)
	require.Equal(t, []string{gapReportLost}, report.Gaps)
}

// As long as it cannot be found out whether a process is there, it does not
// count as gone.
func TestUnknownIsNotGone(t *testing.T) {
	a := newAdoption(t)
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	none := before
	none.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, err := openRecorded(a.record.Process)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	require.ErrorIs(t, err, unix.EMFILE)
	p, err := openRecorded(a.record.Process)
	require.NoError(t, err)
	require.False(t, p.waitGone(0))
	p.close()
}

// A child that cannot be adopted is ended before its end is told.
func TestAdoptEndsWhatItCannotTakeOver(t *testing.T) {
	a := newAdoption(t)
	require.NoError(t, os.RemoveAll(a.dir.Path()))
	a.adopt()
	end := receive(t, a.ended)
	require.Equal(t, events.CodeStoreDamaged, end.Error.Code)
	require.True(t, gone(a.record.Process.PID))
}

// gone reports whether a process has ended, reaped or not.
func gone(pid int) bool {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(pidfd)
	return readable(pidfd)
}

// What was prepared for a child that was never recorded goes; what only looks
// like it stays.
func TestClear(t *testing.T) {
	temp, elsewhere := t.TempDir(), t.TempDir()
	s := New(Config{TempRoot: temp, Deadlines: deadlines.Default()})
	defer s.Close()
	own, link := filepath.Join(temp, "a"), filepath.Join(temp, "b")
	require.NoError(t, os.MkdirAll(filepath.Join(own, "inputs"), 0o700))
	beside := filepath.Join(temp+"-123", "a")
	require.NoError(t, os.MkdirAll(beside, 0o700))
	require.NoError(t, os.Symlink(elsewhere, link))
	for _, id := range []string{"a", "b", "missing"} {
		s.Clear(id)
	}
	require.NoDirExists(t, own)
	require.NoDirExists(t, beside)
	require.DirExists(t, elsewhere)
	_, err := os.Lstat(link)
	require.NoError(t, err)
}

// What runs in control groups of a child that was never recorded ends with them.
func TestClearEndsGroups(t *testing.T) {
	s := New(Config{TempRoot: t.TempDir(), Deadlines: deadlines.Default()})
	defer s.Close()
	id := events.NewID()
	leaf, err := makeLeaf(t.Context(), id)
	if err != nil {
		t.Skipf("needs a writable cgroup v2: %v", err)
	}
	cmd := exec.Command("sleep", "652")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	leaf.place(cmd.SysProcAttr)
	require.NoError(t, cmd.Start())
	s.Clear(id)
	require.Error(t, cmd.Wait())
	require.NoDirExists(t, leaf.path())
	require.NoError(t, leaf.close(t.Context()), "closing what is gone is no error")
}

// A process that ended and that nobody reaps is gone: it must not be looked for
// again and again.
func TestUnreapedIsGone(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Start())
	id := events.Process{PID: cmd.Process.Pid}
	pidfd, err := unix.PidfdOpen(id.PID, 0)
	require.NoError(t, err)
	defer unix.Close(pidfd)
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
	require.NoError(t, err)
	p, err := openRecorded(&id)
	require.NoError(t, err)
	require.True(t, p.waitGone(patience))
	require.NoError(t, cmd.Wait())
}
