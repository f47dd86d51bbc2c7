package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/proc"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// setting is what the cases share: each part is made by the first that needs it.
type setting struct {
	ctx  context.Context
	opts options
	dir  string

	// floor is the program that does nothing.
	floor func() (empty, error)
	// plain is a coordinator as it is by default, always one with --sync-always.
	plain, always func() (*instance, error)
	// seeded is a state directory with many finished records.
	seeded func() (string, error)
	// few and many have few and many records and live subagents.
	few, many func() (*instance, error)

	undo []func() error
}

func newSetting(ctx context.Context, o options) (*setting, error) {
	dir, err := os.MkdirTemp("", "hayward-bench-")
	if err != nil {
		return nil, err
	}
	s := &setting{ctx: ctx, opts: o, dir: dir}
	s.undo = append(s.undo, func() error { return os.RemoveAll(dir) })
	s.floor = sync.OnceValues(func() (empty, error) { return buildEmpty(ctx, dir) })
	s.plain = s.coordinator("plain")
	s.always = s.coordinator("always", "--sync-always")
	s.seeded = sync.OnceValues(s.seed)
	s.few = sync.OnceValues(func() (*instance, error) { return s.crowd(filepath.Join(dir, "few"), fewFinished, fewLive) })
	s.many = sync.OnceValues(func() (*instance, error) {
		state, err := s.seeded()
		if err != nil {
			return nil, err
		}
		return s.crowd(state, 0, o.live)
	})
	return s, nil
}

// close takes back what was made, last first.
func (s *setting) close() error {
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	return errors.Join(errs...)
}

// coordinator returns what starts a fresh coordinator once.
func (s *setting) coordinator(name string, flags ...string) func() (*instance, error) {
	return sync.OnceValues(func() (*instance, error) { return s.start(filepath.Join(s.dir, name), flags...) })
}

func (s *setting) start(state string, flags ...string) (*instance, error) {
	b, err := start(s.ctx, s.opts.program, state, flags...)
	if err == nil {
		s.undo = append(s.undo, b.stop)
	}
	return b, err
}

// seed makes the state directory with many finished records. Its model is what a
// coordinator wrote there.
func (s *setting) seed() (string, error) {
	state := filepath.Join(s.dir, "many")
	b, err := start(s.ctx, s.opts.program, state)
	if err != nil {
		return "", err
	}
	model, err := b.anEnd()
	if err := errors.Join(err, b.stop()); err != nil {
		return "", err
	}
	return state, seed(s.ctx, state, model, s.opts.finished)
}

// crowdFlags let as much live as a crowd has, on any machine.
func (s *setting) crowdFlags() []string {
	most := strconv.Itoa(2*s.opts.live + fewLive)
	return []string{"--max-per-session", most, "--max-total", most, "--start-timeout", "2m", "--put-timeout", "1m"}
}

// crowd starts a coordinator, and has it end and keep so many subagents.
func (s *setting) crowd(state string, finished, live int) (*instance, error) {
	b, err := s.start(state, s.crowdFlags()...)
	if err != nil {
		return nil, err
	}
	for range finished {
		if _, err := b.anEnd(); err != nil {
			return nil, err
		}
	}
	if b.alone, err = proc.PSS(b.daemon.Process.Pid); err != nil {
		return nil, err
	}
	return b, b.populate("crowd", live)
}

// populate starts n subagents under a prompt, which live until they are cancelled,
// and returns when all of them run.
func (b *instance) populate(prompt string, n int) error {
	var all errgroup.Group
	all.SetLimit(16)
	for range n {
		all.Go(func() error {
			_, err := b.c.Spawn(b.ctx, events.Spawn{
				ParentSessionID: session, ParentPromptID: prompt, RunInBackground: true,
				Command: []string{"sleep", "3600"}, Cwd: b.work, Workspace: b.work,
			})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for {
		st, err := b.c.Status(b.ctx)
		switch {
		case err != nil:
			return err
		case st.Active == n:
			return nil
		case st.Active+st.Pending+st.Queued < n:
			return fmt.Errorf("%d of %d subagents that should live have ended", n-st.Active-st.Pending-st.Queued, n)
		}
		time.Sleep(20 * time.Millisecond) // between two looks; nothing is measured
	}
}

// supervisors are the processes of what lives, by their records.
func (b *instance) supervisors() ([]events.Process, error) {
	var all []events.Process
	root, err := rundir.Open(filepath.Join(b.state, "subagents"))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for snapshot, err := range b.c.Subagents(b.ctx, events.ListActive{}) {
		if err != nil {
			return nil, err
		}
		d, err := root.Open(snapshot.SubagentID)
		if err != nil {
			return nil, err
		}
		record, err := d.ReadRecord()
		if err := errors.Join(err, d.Close()); err != nil {
			return nil, err
		}
		all = append(all, *record.Process)
	}
	return all, nil
}
