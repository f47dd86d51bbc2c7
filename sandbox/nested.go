package sandbox

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

var networks = map[events.Network]policy.Network{
	events.NetworkNone: policy.NetworkNone, events.NetworkLoopback: policy.NetworkLoopback, events.NetworkOpen: policy.NetworkOpen,
}

// network is what a child with the capability set may reach.
func network(caps policy.Capabilities, loopback bool) events.Network {
	switch {
	case !caps.RestrictNetwork:
		return events.NetworkOpen
	case loopback:
		return events.NetworkLoopback
	}
	return events.NetworkNone
}

// Bounds returns what p leaves to its child: what is spawned from inside is kept
// within that. Under off there are none.
func (p *Plan) Bounds() *policy.Bounds {
	if p.paths == nil {
		return nil
	}
	b := p.paths.bounds()
	b.Profile, b.PlanHash, b.Network = p.profile.Name(), p.Hash, networks[p.Network]
	b.Required = p.required(handoff.StepLandlock)
	return &b
}

// bounds are those of the roots as they are.
func (out *roots) bounds() policy.Bounds {
	b := policy.Bounds{
		ReadAll: out.caps.DefaultRead, Readable: treePaths(out.readable), Closed: slices.Clone(out.closed),
		Sockets: slices.Clone(out.sockets), Tracing: out.caps.Tracing, PrivateTemp: out.caps.PrivateTemp,
	}
	for _, w := range out.writable {
		if w.path != out.temp { // each child has its own
			b.Writable = append(b.Writable, w.path)
		}
	}
	for _, d := range out.denied {
		b.Denied = append(b.Denied, policy.Denied{Path: d.path, Identity: d.is, Placed: slices.Contains(out.placed, d.path)})
	}
	return b
}

// narrow keeps what is opened within the bounds of the spawner's sandbox. What the
// request names itself must lie in them.
func (out *roots) narrow(r Request) *events.Error {
	if r.Within == nil {
		return nil
	}
	if e := unmoved(r.Within); e != nil {
		return e
	}
	inner := out.bounds()
	inner.Network = networks[network(out.caps, r.Loopback)]
	both, lost := policy.Intersect(*r.Within, inner)
	for _, path := range lost {
		if path == out.workspace || slices.ContainsFunc(out.caps.ReadWrite, func(e policy.Entry) bool { return e.Path == path && e.Origin == policy.AddDir }) {
			return wider("%s for writing", path)
		}
	}
	out.narrowed = lost
	var temp []tree
	for _, w := range out.writable {
		if w.path == out.temp {
			temp = append(temp, w)
		}
	}
	out.writable = append(asTrees(both.Writable, out.writable), temp...)
	slices.SortFunc(out.writable, byPath)
	out.readable = asTrees(both.Readable, out.readable)
	out.caps.DefaultRead, out.caps.Tracing, out.caps.PrivateTemp = both.ReadAll, both.Tracing, both.PrivateTemp
	if both.Network != inner.Network {
		out.caps.NetworkOrigin = spawnersSandbox
	}
	out.caps.RestrictNetwork, out.loopback = both.Network != policy.NetworkOpen, both.Network == policy.NetworkLoopback
	return nil
}

// spawnersSandbox is the origin of what [Request.Within] adds.
const spawnersSandbox = "the spawner's sandbox"

// asTrees finds out what is at paths. Those of known keep their origin; what is
// gone is left out.
func asTrees(paths []string, known []tree) []tree {
	var out []tree
	for _, path := range paths {
		if i := slices.IndexFunc(known, func(t tree) bool { return t.path == path }); i >= 0 {
			out = append(out, known[i])
		} else if info, err := os.Lstat(path); err == nil {
			out = append(out, tree{path: path, dir: info.IsDir(), origin: spawnersSandbox})
		}
	}
	return out
}

// unmoved refuses bounds whose denied files the spawner may have moved: it cannot
// move them, but a directory above them that it writes.
func unmoved(within *policy.Bounds) *events.Error {
	for _, d := range within.Denied {
		if !within.Writes(filepath.Dir(d.Path)) {
			continue
		}
		if info, err := os.Lstat(d.Path); err != nil || policy.IdentityOf(info) != d.Identity {
			return refused("%s, which the spawner's sandbox denies, is not what it was: it may be elsewhere now", d.Path).
				WithRemedy("spawn it from outside")
		}
	}
	return nil
}

// spawnerDenies are the entries for what the spawner may not reach either.
func spawnerDenies(within *policy.Bounds) []policy.Entry {
	if within == nil {
		return nil
	}
	var out []policy.Entry
	for _, d := range within.Denied {
		out = append(out, policy.Entry{Path: d.Path, Origin: spawnersSandbox, Optional: true})
	}
	return out
}

// wider refuses what the spawner's sandbox does not open.
func wider(format string, args ...any) *events.Error {
	return refused("the sandbox of the spawner does not open "+format, args...).
		WithRemedy("ask for what lies in it: a spawn from inside can only be narrower")
}
