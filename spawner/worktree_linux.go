package spawner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/launch"
	"github.com/hayward-dev/hayward/sandbox"
	"github.com/hayward-dev/hayward/worktree"
)

// Worktrees is how subagents with isolation worktree get a working tree.
type Worktrees struct {
	Root   worktree.Root
	Limits worktree.Limits
	// Setup is a shell command that runs in a new tree, inside the sandbox, before
	// the subagent's own; empty for none. SetupDeadline bounds it.
	Setup         string
	SetupDeadline time.Duration
}

// setupLog is the file in the run directory with the output of the setup command.
const setupLog = "setup.log"

// space is where a child works: what its request names, or a tree of its own.
type space struct {
	// workspace and cwd are what the sandbox and the command get.
	workspace, cwd string
	// tree is nil without one.
	tree *worktree.Tree
	// lease is that of an adopted child's tree.
	lease *worktree.Lock
	// began tells that something may have run in the tree: from then on it is not
	// deleted unless it was saved.
	began bool
}

func (c *child) isolated() bool { return c.spec.Request.Isolation == events.IsolationWorktree }

// findSpace makes the child's tree, if it is to have one: a tree comes before the
// directory that the request names, and nothing takes its place.
func (c *child) findSpace() *events.Error {
	req := c.spec.Request
	c.space = space{workspace: req.Workspace, cwd: req.Cwd}
	if !c.isolated() {
		return nil
	}
	ctx, cancel := c.untilStopped(worktree.CreateDeadline)
	defer cancel()
	home := req.Env["HOME"]
	if home == "" {
		home = c.s.cfg.Home
	}
	wanted := worktree.Request{
		ID: c.spec.ID, Run: c.spec.Run, Session: req.ParentSessionID, Dir: req.Cwd, Home: home,
		Limits: c.s.cfg.Worktrees.Limits,
	}
	var tree *worktree.Tree
	var err *events.Error
	if c.takesTree() {
		tree, err = c.s.cfg.Worktrees.Root.Resume(ctx, wanted, c.spec.Resume.Identity.SubagentID)
	} else {
		tree, err = c.s.cfg.Worktrees.Root.Create(ctx, wanted)
	}
	if err != nil {
		return err
	}
	c.space = space{workspace: tree.Path, cwd: tree.Cwd, tree: tree}
	c.onUndo(c.leaveSpace)
	return nil
}

// leaveSpace lets go of the child's tree, and deletes it if nothing ran in it.
func (c *child) leaveSpace() {
	if !c.space.began {
		ctx, cancel := context.WithTimeout(context.Background(), worktree.GitDeadline)
		defer cancel()
		if err := c.s.cfg.Worktrees.Root.Undo(ctx, c.spec.ID); err != nil {
			c.log.Error("working tree not deleted", zap.Error(err))
		}
	}
	c.dropLease()
}

func (c *child) dropLease() {
	c.space.lease.Unlock()
	if c.space.tree != nil {
		c.space.tree.Close()
	}
}

// untilStopped returns a context that ends when the child is stopped, the spawner
// closes, or the time is over. The stop itself stays in the mailbox.
func (c *child) untilStopped(limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(c.s.ctx, limit)
	done := make(chan struct{})
	c.s.wg.Go(func() {
		defer close(done)
		select {
		case <-c.mail.stops:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); <-done }
}

// confine adds what a tree means for the sandbox.
func (c *child) confine(r *sandbox.Request) {
	t := c.space.tree
	if t == nil {
		return
	}
	r.Own = t.Path
	r.Closed = []string{t.CommonDir, t.GitDir}
	r.Original = t.Repository
	r.Readable = t.Borrowed
	// What is to be denied in the user's working tree was copied along with it.
	deny := r.Deny
	r.Deny = slices.Clone(deny)
	for _, d := range deny {
		if rest, ok := strings.CutPrefix(d, t.Repository+"/"); ok {
			r.Deny = append(r.Deny, filepath.Join(t.Path, rest))
		}
	}
}

// setUp runs the configured command in a new tree, inside the sandbox.
func (c *child) setUp() *events.Error {
	w := c.s.cfg.Worktrees
	if c.space.tree == nil || w.Setup == "" || c.space.tree.TakenFrom != "" {
		return nil // one that was taken over was set up before
	}
	ctx, cancel := c.untilStopped(w.SetupDeadline)
	defer cancel()
	failed := func(err error) *events.Error {
		return events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: set its worktree up: %w", c.spec.ID, err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return failed(err)
	}
	defer null.Close()
	out, err := c.dir.OpenAppend(setupLog)
	if err != nil {
		return failed(err)
	}
	exit, err := launch.Run(c.plan, launch.Command{
		Argv: []string{"/bin/sh", "-c", w.Setup}, Env: c.environment(), Cwd: c.space.tree.Path,
		ChildBinary: c.s.cfg.ChildBinary, Stdin: null, Stdout: out, Stderr: out, Done: ctx.Done(),
	})
	err = errors.Join(err, out.Close())
	switch {
	case ctx.Err() != nil:
		err = errors.Join(context.Cause(ctx), err)
	case err == nil && launch.Code(exit) != 0:
		err = errors.New("the command [worktree] setup failed")
	}
	if err == nil {
		return nil
	}
	e := failed(err).WithDetail("setup", w.Setup).WithRemedy("its whole output was in %s of the run directory", setupLog)
	if launch.Code(exit) != 0 && ctx.Err() == nil {
		e = e.WithDetail("exit", exitText(exit))
	}
	if said, err := c.dir.Output(setupLog, 2048, 0, 2048); err == nil && said.Text != "" {
		e = e.WithDetail("output", said.Text)
	}
	return e
}

func exitText(e events.Exit) string {
	if e.Code == nil {
		return e.Signal
	}
	return strconv.Itoa(*e.Code)
}

// adoptSpace takes the lease of an adopted child's tree.
func (c *child) adoptSpace() {
	c.space = space{workspace: c.spec.Request.Workspace, cwd: c.spec.Request.Cwd, began: true}
	if !c.isolated() {
		return
	}
	ctx, cancel := context.WithTimeout(c.s.ctx, worktree.LockDeadline)
	defer cancel()
	lease, err := c.s.cfg.Worktrees.Root.Lease(ctx, c.spec.ID)
	if err != nil {
		// It may be gone: the end of it was told and not heard.
		c.log.Warn("lease of the working tree not taken", zap.Error(err))
	}
	c.space.lease = lease
	c.onUndo(c.leaveSpace)
}

// endSpace saves what the child left in its tree. It returns false if the spawner
// closed meanwhile: the next coordinator saves it.
func (c *child) endSpace(end *events.End) bool {
	if !c.isolated() {
		return true
	}
	start := c.treeOfRecord()
	out := c.s.cfg.Worktrees.Root.End(c.s.ctx, c.spec.ID, start)
	if c.s.ctx.Err() != nil {
		return false
	}
	if p := out.Worktree.Problem; p != nil {
		c.log.Error("working tree not saved as a whole, its directory is kept", zap.String("dir", out.Worktree.Path), zap.Error(p))
	}
	end.Worktree, end.Changes = out.Worktree, out.Changes
	return true
}

// treeOfRecord is what the record says of the child's tree, nil if it has none.
func (c *child) treeOfRecord() *events.Worktree {
	switch {
	case c.space.tree != nil:
		return c.space.tree.Events()
	case c.adopted != nil:
		return c.adopted.Worktree
	}
	return nil
}

// clearTree deletes the tree of a child that is in no record, so that never ran.
func (s *Spawner) clearTree(id string) {
	root := s.cfg.Worktrees.Root
	if root.Path() == "" {
		return
	}
	if _, err := os.Lstat(filepath.Join(root.Path(), id)); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, worktree.GitDeadline)
	defer cancel()
	if err := root.Undo(ctx, id); err != nil {
		s.cfg.Log.Error("working tree not deleted", zap.String("id", id), zap.Error(err))
	}
}
