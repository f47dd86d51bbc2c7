package spawner

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/sandbox"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// Inheritance is what a subagent leaves to those that it spawns: where it works, and
// the bounds of what it was confined to. It is in its run directory before the
// command of the subagent runs, and stays for as long as that does, so that a later
// coordinator reads the same.
type Inheritance struct {
	ID  string `json:"id"`
	Run int    `json:"run"`
	// Cwd and Workspace are those that it really has: in its own working tree, if it
	// has one, which is then Tree.
	Cwd       string `json:"cwd"`
	Workspace string `json:"workspace"`
	Tree      string `json:"tree,omitempty"`
	// Definitions is the directory that the agent types of the whole tree are those of.
	Definitions string `json:"definitions"`
	// Home is its home directory.
	Home string `json:"home,omitempty"`
	// Profile is its sandbox's, Base the built-in one that it extends, Confined whether
	// that is enforced. Bounds are then set.
	Profile  string         `json:"profile"`
	Base     string         `json:"base"`
	Confined bool           `json:"confined"`
	Bounds   *policy.Bounds `json:"bounds,omitempty"`
}

// ReadInheritance reads what the subagent id leaves. Without it nothing can be
// spawned in there: what it may not reach would not be known.
func ReadInheritance(root rundir.Root, id string) (Inheritance, *events.Error) {
	var in Inheritance
	dir, err := root.Open(id)
	if err == nil {
		err = errors.Join(dir.ReadBounds(&in, func() string { return in.ID }), dir.Close())
	}
	if err == nil && in.Confined != (in.Bounds != nil) {
		err = rundir.ErrTorn
	}
	switch {
	case err == nil:
		return in, nil
	case errors.Is(err, fs.ErrNotExist):
		return in, events.Errorf(events.CodeSandboxUnavailable, events.LayerSandbox,
			"spawn in %s: what its sandbox leaves is not known: %w", id, err).
			WithRemedy("spawn it from outside")
	}
	return in, events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "spawn in %s: %w", id, err).
		WithRemedy("spawn it from outside")
}

// inherit keeps a nested child within the sandbox of its spawner.
func (c *child) inherit(r *sandbox.Request) *events.Error {
	if c.spec.ParentID == "" {
		return nil
	}
	in, err := ReadInheritance(c.s.cfg.Root, c.spec.ParentID)
	if err != nil {
		return err
	}
	r.Within = in.Bounds
	if in.Tree != "" {
		// The spawner's own directory is what is shown of the hidden ones.
		r.Own = in.Tree
	}
	return nil
}

// inherited refuses a sandbox that the child cannot work in: what the spawner's
// leaves of the network is not enough for an agent to reach its model.
func (c *child) inherited(r sandbox.Request) *events.Error {
	if r.Within == nil || !r.Loopback || c.plan.Network != events.NetworkNone {
		return nil
	}
	return events.Errorf(events.CodeSandboxUnavailable, events.LayerSandbox,
		"start %s: an agent reaches its model over a loopback device, and the sandbox of its spawner has none", c.spec.ID).
		WithRemedy("let an agent spawn it, or a command under a profile that leaves the network open")
}

// bequeath keeps what a child leaves to those that it may spawn.
func (c *child) bequeath() *events.Error {
	if c.spec.Spawns == nil {
		return nil
	}
	in := Inheritance{
		ID: c.spec.ID, Run: c.spec.Run, Cwd: c.space.cwd, Workspace: c.space.workspace, Home: c.homeOfUser(),
		Definitions: c.spec.Request.Cwd, Profile: c.plan.Profile().Name(), Base: c.plan.Profile().Base(), Bounds: c.plan.Bounds(),
	}
	in.Confined = in.Bounds != nil
	if c.plan.Profile().Enforced() != in.Confined {
		return events.Errorf(events.CodeInternal, events.LayerSandbox, "start %s: the bounds of profile %s are not known", c.spec.ID, in.Profile)
	}
	if c.space.tree != nil {
		in.Tree = c.space.tree.Path
	}
	if c.spec.ParentID != "" {
		above, err := ReadInheritance(c.s.cfg.Root, c.spec.ParentID)
		if err != nil {
			return err
		}
		in.Tree, in.Definitions = cmp.Or(in.Tree, above.Tree), above.Definitions
	}
	if err := c.dir.WriteBounds(in); err != nil {
		return events.Errorf(events.CodeStartFailed, events.LayerCoordinator, "start %s: %w", c.spec.ID, err)
	}
	return nil
}

// homeOfUser is the home directory that the child's own request is about.
func (c *child) homeOfUser() string {
	if home := c.spec.Request.Env["HOME"]; home != "" {
		return home
	}
	return c.s.cfg.Home
}
