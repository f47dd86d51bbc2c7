package daemon

import (
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/spawner"
	"github.com/hayward-dev/hayward/worktree"
)

// Worktrees configure isolation worktree. Zero values mean no bound, no setup, and
// the state directory's place.
type Worktrees struct {
	Dir           string
	Setup         string
	SetupDeadline time.Duration
	Limits        worktree.Limits
}

// openWorktrees makes the directory of the working trees and finishes deletions
// that were cut off.
func (d *daemon) openWorktrees() (spawner.Worktrees, error) {
	o := d.opts.Worktrees
	dir := o.Dir
	if dir == "" {
		dir = d.opts.Paths.Worktrees()
	}
	if err := privateDir(dir); err != nil {
		return spawner.Worktrees{}, err
	}
	root, err := worktree.Open(dir)
	if err != nil {
		return spawner.Worktrees{}, err
	}
	if err := root.Sweep(); err != nil {
		d.log.Warn("working trees not deleted", zap.Error(err))
	}
	return spawner.Worktrees{Root: root, Limits: o.Limits, Setup: o.Setup, SetupDeadline: o.SetupDeadline}, nil
}

// worktreeDeadline is what a working tree adds to the time that a start may take.
func (o Worktrees) worktreeDeadline() time.Duration {
	if o.Setup == "" {
		return worktree.CreateDeadline
	}
	return worktree.CreateDeadline + o.SetupDeadline
}
