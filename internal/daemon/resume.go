package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/resume"
	"github.com/hayward-dev/hayward/spawner"
	"github.com/hayward-dev/hayward/worktree"
)

// resumed is a spawn that goes on from a finished subagent, once settled.
type resumed struct {
	source   *events.ResumeSource
	runner   string
	warnings []string
}

// resumes takes spawns that go on from a finished subagent through the gates.
type resumes struct {
	root   rundir.Root
	trees  worktree.Root
	policy resume.Policy
	agents spawner.Agents
	lookup func(ctx context.Context, session, ref string) (events.Record, *events.Error)
}

// settle returns the spawn with what it takes from its source; one that begins anew
// is returned as it is. It reads files, so it does not belong on the drain loop.
func (r *resumes) settle(ctx context.Context, s events.Spawn) (events.Spawn, resumed, *events.Error) {
	if s.ResumeFrom == "" {
		return s, resumed{}, nil
	}
	record, err := r.lookup(ctx, s.ParentSessionID, s.ResumeFrom)
	switch {
	case err != nil && err.Code == events.CodeUnknownID:
		return s, resumed{}, events.ResumeNotFound(s.ResumeFrom, s.ParentSessionID)
	case err != nil:
		return s, resumed{}, err
	case record.Live():
		return s, resumed{}, events.ResumeLive(record.ID)
	}
	src, failure := spawner.ReadSource(r.root, record.ID)
	if failure != nil {
		return s, resumed{}, events.Errorf(events.CodeResumeUnreadable, events.LayerWorkspace, "resume %s: what it was asked and how it ended cannot be read: %w", record.ID, failure)
	}
	src.Record = record
	a, err := resume.Admit(src, s, r.policy, &evidence{resumes: r, ctx: ctx, src: src})
	if err != nil {
		return s, resumed{}, err
	}
	return a.Request, resumed{&a.Source, src.Runner(), a.Warnings}, nil
}

// check refuses a type that is run otherwise than it was: another runner cannot read
// the session.
func (r resumed) check(agent *events.AgentSpec) *events.Error {
	if r.source == nil {
		return nil
	}
	runner := events.RunnerCommand
	if agent != nil {
		runner = agent.Runner
	}
	if runner == r.runner {
		return nil
	}
	return events.Errorf(events.CodeResumeType, events.LayerGate, "resume %s: the type %s is run by %s now, and was by %s",
		r.source.Identity.SubagentID, r.source.Identity.Type, runner, r.runner).
		WithDetail("runner", r.runner).WithRemedy("give the type its runner back, or spawn anew")
}

// evidence looks for what the gates ask for, each once.
type evidence struct {
	*resumes
	ctx context.Context
	src resume.Source

	scanned bool
	summary resume.Summary
	scanErr error
}

// Persona implements [resume.Evidence].
func (e *evidence) Persona(name string) error {
	places, err := e.agents.Places(e.src.Spec.Request.Cwd)
	if err != nil {
		return err
	}
	persona, faults := agents.FindPersona(places, name)
	if persona != nil {
		return nil
	}
	for _, f := range faults {
		if f.Severity == agents.SeverityError {
			return errors.New(f.String())
		}
	}
	return fs.ErrNotExist
}

func (e *evidence) dir() string { return filepath.Join(e.root.Path(), e.src.Record.ID) }

// Transcript implements [resume.Evidence].
func (e *evidence) Transcript() (resume.Summary, error) {
	if !e.scanned {
		e.scanned = true
		e.summary, e.scanErr = e.scan()
	}
	return e.summary, e.scanErr
}

func (e *evidence) scan() (resume.Summary, error) {
	dir, err := e.root.Open(e.src.Record.ID)
	if err != nil {
		return resume.Summary{}, err
	}
	defer dir.Close()
	f, err := dir.OpenRead(rundir.TranscriptFile)
	if errors.Is(err, fs.ErrNotExist) {
		return resume.Summary{}, nil // it never started
	}
	if err != nil {
		return resume.Summary{}, err
	}
	defer f.Close()
	return resume.Scan(f)
}

// Session implements [resume.Evidence].
func (e *evidence) Session(id string) (string, error) {
	home, err := os.OpenRoot(filepath.Join(e.dir(), resume.HomeDir))
	if err != nil {
		return "", err
	}
	defer home.Close()
	return resume.FindSession(home, e.src.Runner(), id)
}

// Tree implements [resume.Evidence].
func (e *evidence) Tree() error {
	if err := e.trees.Resumable(e.ctx, e.src.Record.ID, e.src.Spec.Request.Cwd); err != nil {
		return err
	}
	return nil
}

// Directory implements [resume.Evidence].
func (e *evidence) Directory(path string) error {
	now, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	st, err := os.Stat(now)
	switch {
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%s is no directory", path)
	case now != path:
		return fmt.Errorf("%s leads to %s now", path, now)
	}
	return nil
}
