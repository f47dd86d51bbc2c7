package sandbox

import (
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// Explanation says what a plan opens and closes, and why.
type Explanation struct {
	Profile string `json:"profile"`
	// Base is the built-in profile that a custom one extends.
	Base string `json:"base,omitempty"`
	// Enforced is false under profile off only.
	Enforced    bool           `json:"enforced"`
	Network     events.Network `json:"network,omitempty"`
	NetworkFrom string         `json:"network_from,omitempty"`
	// ReadAll is true where everything that is not denied can be read.
	ReadAll bool `json:"read_all"`
	// Readable, Writable and Denied are paths with their origins; Devices are the
	// device files that can be used, Closed what stays read-only in what is
	// writable, Hidden what is out of reach because it is the coordinator's own.
	Readable []Explained `json:"readable,omitempty"`
	Writable []Explained `json:"writable,omitempty"`
	Denied   []Explained `json:"denied,omitempty"`
	Devices  []string    `json:"devices,omitempty"`
	Closed   []string    `json:"closed,omitempty"`
	Hidden   []string    `json:"hidden,omitempty"`
	// Missing are entries that lead to nothing now, Gaps what is not covered.
	Missing []string `json:"missing,omitempty"`
	Gaps    []string `json:"gaps,omitempty"`
	// Env is what the command's environment gets.
	Env      map[string]string `json:"env,omitempty"`
	PlanHash string            `json:"plan_hash"`
}

// Explained is a path and what opens or denies it.
type Explained struct {
	Path string `json:"path"`
	From string `json:"from"`
}

// Explain says what p opens and closes.
func (p *Plan) Explain() Explanation {
	x := Explanation{
		Profile: p.profile.Name(), Enforced: p.profile.Enforced(), ReadAll: true, Network: p.Network,
		Env: p.Env, PlanHash: p.Hash, Gaps: p.gaps,
	}
	if p.profile.Custom() != nil {
		x.Base = p.profile.Base()
	}
	if p.paths == nil {
		return x
	}
	x.NetworkFrom, x.ReadAll = p.paths.caps.NetworkOrigin, p.paths.caps.DefaultRead
	x.Readable, x.Writable, x.Denied = explained(p.paths.readable), explained(p.paths.writable), explained(p.paths.denied)
	for _, d := range p.paths.caps.Devices {
		x.Devices = append(x.Devices, d.Path)
	}
	x.Closed, x.Hidden, x.Missing = p.paths.closed, p.paths.hidden, p.paths.missing
	return x
}

func explained(trees []tree) []Explained {
	var out []Explained
	for _, t := range trees {
		out = append(out, Explained{t.path, t.origin})
	}
	return out
}

// Describe is the capability set of a profile at no particular place.
func Describe(p Profile) policy.Capabilities { return policy.Resolve(p, policy.Place{Workspace: "/"}) }
