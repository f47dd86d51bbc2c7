package policy

import (
	"slices"
	"strings"
)

// Network is how much of the network is left, the least first, so that of two the
// smaller is what both leave.
type Network int

// The kinds of [Network].
const (
	NetworkNone     Network = iota // local sockets only
	NetworkLoopback                // a loopback device of its own
	NetworkOpen                    // the host's network
)

// Denied is a path that is out of reach, with the identity of what was there: who
// is kept from it may still move a directory above it.
type Denied struct {
	Path string `json:"path"`
	Identity
	// Placed is denied by its place, so that no directory above it may move.
	Placed bool `json:"placed,omitempty"`
}

// Bounds are what an applied plan leaves to a child, in canonical paths. A path
// lies in a list if it is one of it or below one. The child's own TMPDIR is not
// among them: each child has another.
type Bounds struct {
	// Profile names the profile, PlanHash the plan.
	Profile  string `json:"profile"`
	PlanHash string `json:"plan_hash,omitempty"`
	// ReadAll opens everything for reading; Readable and Writable are what is
	// opened otherwise. What can be written can be read.
	ReadAll  bool     `json:"read_all,omitempty"`
	Readable []string `json:"readable,omitempty"`
	Writable []string `json:"writable,omitempty"`
	// Denied is out of reach and Closed cannot be written, whatever is opened.
	Denied []Denied `json:"denied,omitempty"`
	Closed []string `json:"closed,omitempty"`
	// Sockets are the host's that stay within reach.
	Sockets []string `json:"sockets,omitempty"`
	Network Network  `json:"network"`
	// Tracing leaves ptrace to the child, PrivateTemp gives it the host's temporary
	// directories empty.
	Tracing     bool `json:"tracing,omitempty"`
	PrivateTemp bool `json:"private_temp,omitempty"`
	// Required is false for a plan that goes on without what cannot be enforced.
	Required bool `json:"required,omitempty"`
}

// Reads reports whether a path can be read.
func (b Bounds) Reads(path string) bool {
	return !b.denies(path) && (b.ReadAll || inAny(path, b.Readable) || inAny(path, b.Writable))
}

// Writes reports whether a path can be written.
func (b Bounds) Writes(path string) bool {
	return !b.denies(path) && inAny(path, b.Writable) && !inAny(path, b.Closed)
}

func (b Bounds) denies(path string) bool {
	return slices.ContainsFunc(b.Denied, func(d Denied) bool { return Within(path, d.Path) })
}

func inAny(path string, trees []string) bool {
	return slices.ContainsFunc(trees, func(t string) bool { return Within(path, t) })
}

// Intersect is what both bounds leave: what the kernel would if it applied inner
// within outer. It takes its profile from inner. lost are the trees of inner that
// it opens and outer does not open as far.
func Intersect(outer, inner Bounds) (both Bounds, lost []string) {
	both = inner
	both.ReadAll = outer.ReadAll && inner.ReadAll
	both.Network = min(outer.Network, inner.Network)
	both.Tracing = outer.Tracing && inner.Tracing
	both.PrivateTemp = outer.PrivateTemp || inner.PrivateTemp
	both.Required = outer.Required || inner.Required
	both.Closed = topmost(slices.Concat(outer.Closed, inner.Closed))
	both.Denied = slices.Concat(outer.Denied, inner.Denied)
	slices.SortFunc(both.Denied, func(a, b Denied) int { return strings.Compare(a.Path, b.Path) })
	both.Denied = slices.CompactFunc(both.Denied, func(a, b Denied) bool { return a.Path == b.Path })
	both.Sockets = slices.DeleteFunc(slices.Clone(inner.Sockets), func(s string) bool { return !slices.Contains(outer.Sockets, s) })

	usable := func(trees []string, closed bool) []string {
		return slices.DeleteFunc(trees, func(t string) bool { return both.denies(t) || closed && inAny(t, both.Closed) })
	}
	both.Writable = usable(common(outer.Writable, inner.Writable), true)
	both.Readable = nil
	if !both.ReadAll {
		// Also what only one of the two may write.
		both.Readable = usable(common(outer.read(), inner.read()), false)
	}
	for _, t := range inner.Writable {
		if inner.Writes(t) && !both.Writes(t) {
			lost = append(lost, t)
		}
	}
	for _, t := range inner.Readable {
		if inner.Reads(t) && !both.Reads(t) {
			lost = append(lost, t)
		}
	}
	return both, lost
}

// read are the trees that can be read.
func (b Bounds) read() []string {
	if b.ReadAll {
		return []string{"/"}
	}
	return slices.Concat(b.Readable, b.Writable)
}

// common are the topmost trees that lie in both lists.
func common(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			if Within(x, y) {
				out = append(out, x)
			} else if Within(y, x) {
				out = append(out, y)
			}
		}
	}
	return topmost(out)
}

// topmost returns paths sorted, without those that lie in another.
func topmost(paths []string) []string {
	sorted := slices.Clone(paths)
	slices.Sort(sorted) // a parent before what is in it
	var out []string
	for _, p := range sorted {
		if !inAny(p, out) {
			out = append(out, p)
		}
	}
	return out
}
