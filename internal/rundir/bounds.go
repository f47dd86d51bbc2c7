//go:build unix

package rundir

// BoundsFile holds what a subagent that may spawn leaves to those that it spawns.
const BoundsFile = "bounds.json"

// WriteBounds makes v, what a subagent leaves to those that it spawns, durable, or
// lets [Root.Sync] do so.
func (d *Dir) WriteBounds(v any) error { return d.write(BoundsFile, v, true) }

// ReadBounds reads it back into v; id returns the id that it names.
func (d *Dir) ReadBounds(v any, id func() string) error { return d.read(BoundsFile, v, id) }
