package spawner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/resume"
	"github.com/hayward-dev/hayward/sandbox"
)

// ReadSource reads a finished subagent that may be gone on from.
func ReadSource(root rundir.Root, id string) (resume.Source, error) {
	dir, err := root.Open(id)
	if err != nil {
		return resume.Source{}, err
	}
	defer dir.Close()
	spec, err := dir.ReadSpec()
	if err != nil {
		return resume.Source{}, err
	}
	record, err := dir.ReadResult()
	return resume.Source{Record: record, Spec: spec}, err
}

// resumes reports whether c goes on from another subagent.
func (c *child) resumes() bool { return c.spec.Resume != nil }

// takesTree reports whether c goes on in the working tree of its source.
func (c *child) takesTree() bool {
	return c.resumes() && c.isolated() && c.spec.Resume.Directories.WorktreePath != ""
}

// bring copies the conversation of the source into the run directory. Its working
// tree, TMPDIR and home are there by then. All or nothing: the source is only read.
func (c *child) bring() *events.Error {
	if !c.resumes() {
		return nil
	}
	id := c.spec.Resume.Identity.SubagentID
	fail := func(err error) *events.Error {
		return events.Errorf(events.CodeResumeCopyFailed, events.LayerWorkspace, "start %s: take up the conversation of %s: %w; nothing of it was left behind", c.spec.ID, id, err).
			WithDetail("resume_from", id).WithRemedy("resume it again once the cause is gone; %s is as it was", id)
	}
	source, err := ReadSource(c.s.cfg.Root, id)
	if err != nil {
		return fail(err)
	}
	from, err := os.OpenRoot(filepath.Join(c.s.cfg.Root.Path(), id))
	if err != nil {
		return fail(err)
	}
	defer from.Close()
	to, err := os.OpenRoot(c.dir.Path())
	if err != nil {
		return fail(err)
	}
	defer to.Close()
	runner := source.Runner()
	copied, err := resume.Copy(resume.Transfer{
		ID: id, From: from, To: to, Runner: runner, Session: c.spec.Resume.Session.ChildSessionID,
		Cwd: c.space.cwd, Paths: c.moves(source),
	})
	if err != nil {
		return fail(err)
	}
	c.onUndo(c.dropCopies)
	crashpoint.Hit(crashpoint.ResumeCopied)
	if err := c.dir.WriteResumed(rundir.Resumed{Items: copied.Items, Bytes: copied.Bytes}); err != nil {
		return fail(err)
	}
	c.itemsBefore = copied.Items
	if source.Record.Agent != nil {
		c.usageBefore = source.Record.Agent.SessionUsage
	}
	return nil
}

// moves are the directories that are other ones than the source had.
func (c *child) moves(source resume.Source) resume.Paths {
	own := resume.Move{From: source.Record.TempDir, To: c.tempDir}
	var tree resume.Move
	switch w := source.Record.Worktree; {
	case w != nil && c.space.tree != nil:
		tree = resume.Move{From: w.Path, To: c.space.tree.Path}
	case w != nil:
		tree = resume.Move{From: w.Path, To: w.Repository}
	case c.space.tree != nil:
		tree = resume.Move{From: c.space.tree.Repository, To: c.space.tree.Path}
	}
	return resume.NewPaths(own, tree)
}

// dropCopies removes what was copied for a start that came to nothing.
func (c *child) dropCopies() {
	if !c.space.began {
		c.s.clearCopies(c.spec.ID)
	}
}

// clearCopies removes from a run directory what was copied for a run that never was.
func (s *Spawner) clearCopies(id string) {
	dir, err := os.OpenRoot(filepath.Join(s.cfg.Root.Path(), id))
	if err == nil {
		err = errors.Join(resume.Clear(dir), dir.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Log.Error("copied conversation not removed", zap.String("id", id), zap.Error(err))
	}
}

// before is what the transcript held before the run.
func (c *child) before() (rundir.Resumed, error) {
	if !c.resumes() {
		return rundir.Resumed{}, nil
	}
	return c.dir.ReadResumed()
}

// sessionVariable names the directory in which a command may keep its state files.
const sessionVariable = "HAYWARD_SESSION_DIR"

// makeStateDir makes the directory of the state files of a command, and its place
// below TMPDIR. Those of an agent are made from its transcript.
func (c *child) makeStateDir() ([]sandbox.Bind, *events.Error) {
	if c.runsAgent() {
		return nil, nil
	}
	fail := func(err error) *events.Error {
		return events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: make the directory of its session: %w", c.spec.ID, err)
	}
	dir := filepath.Join(c.dir.Path(), resume.StateDir)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fail(err)
	}
	place, err := openBelow(c.tempDir, resume.StateDir)
	if err != nil {
		return nil, fail(err)
	}
	defer place.Close()
	return []sandbox.Bind{{Source: dir, Target: place.Name()}}, nil
}

// stateDir is where the command finds the directory of its state files.
func (c *child) stateDir() string {
	if c.plan.SysProcAttr().Cloneflags&unix.CLONE_NEWNS != 0 {
		return c.plan.Inside(filepath.Join(c.tempDir, resume.StateDir))
	}
	return filepath.Join(c.dir.Path(), resume.StateDir)
}

// keepState makes the state files of an agent from its transcript. It returns false
// if the spawner closed meanwhile: the next coordinator makes them.
func (c *child) keepState(report *events.Report, stop *events.Stop) bool {
	if !c.runsAgent() || report == nil || report.Agent == nil {
		return true
	}
	err := c.writeState(report, stop)
	if err == nil {
		return true
	}
	if c.s.ctx.Err() != nil {
		return false
	}
	c.log.Error("state files not kept, so a resume begins without them", zap.Error(err))
	return true
}

func (c *child) writeState(report *events.Report, stop *events.Stop) error {
	dir, err := os.OpenRoot(c.dir.Path())
	if err != nil {
		return err
	}
	defer dir.Close()
	before, err := resume.ReadToolState(dir)
	if err != nil {
		return err
	}
	w := resume.NewWatcher(before, c.spec.Agent.PermissionMode == "plan")
	items, err := c.dir.OpenRead(rundir.TranscriptFile)
	if err != nil {
		return err
	}
	defer items.Close()
	if err := resume.Watch(items, w); err != nil {
		return err
	}
	a := report.Agent
	s := resume.Signals{Turns: a.Turns, ToolCalls: a.ToolCalls, Denials: a.DenialCount, TokensUsed: a.Usage.Total(), StopRequests: []string{}}
	if stop != nil {
		s.StopRequests = append(s.StopRequests, string(stop.Reason))
	} else if report.Ended != "" {
		s.StopRequests = append(s.StopRequests, string(report.Ended))
	}
	return w.Finish(c.s.ctx, dir, c.space.cwd, s)
}
