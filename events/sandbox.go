package events

import "fmt"

// TreeKill is the means by which the whole process tree is ended.
type TreeKill string

// The means, best first.
const (
	TreeKillPIDNamespace TreeKill = "pid_namespace" // its first process ends and the kernel ends the rest
	TreeKillCgroup       TreeKill = "cgroup"        // cgroup.kill of its own leaf
	TreeKillSweep        TreeKill = "sweep"         // signals to every descendant found, until none is left
)

// LayerState says what became of one sandbox layer.
type LayerState string

// The layer states. They are written from what the child reported, never from
// the request.
const (
	LayerEnforced     LayerState = "enforced"      // the child reported that the kernel took it
	LayerNotRequested LayerState = "not_requested" // the profile does not ask for it
	LayerUnavailable  LayerState = "unavailable"   // missing here, and missing was allowed (best effort)
)

// Layer is one sandbox layer as applied.
type Layer struct {
	State LayerState `json:"state"`
	// Detail is for people: an ABI, a count, or why it is unavailable.
	Detail string `json:"detail,omitempty"`
}

// Network is what a child may reach.
type Network string

// The three kinds of network.
const (
	NetworkOpen     Network = "open"     // the host's network
	NetworkLoopback Network = "loopback" // a network namespace with only a loopback device
	NetworkNone     Network = "none"     // no network, local sockets only
)

// SandboxReport is what was asked and what the kernel accepted.
type SandboxReport struct {
	// Requested is the profile asked for, Profile its canonical name.
	Requested string `json:"requested"`
	Profile   string `json:"profile"`
	// Base is the built-in profile that a custom one extends.
	Base string `json:"base,omitempty"`
	// Active is true when every required layer was reported as applied.
	Active bool `json:"active"`
	// Layers by name: fds, namespaces, mounts, caps, no_new_privs, landlock, seccomp.
	Layers  map[string]Layer `json:"layers,omitempty"`
	Network Network          `json:"network,omitempty"`
	// TreeKill is how the whole tree will be ended.
	TreeKill TreeKill `json:"tree_kill,omitempty"`
	// Writable are the roots that were opened for writing.
	Writable []string `json:"writable,omitempty"`
	// Readable are what else was opened for reading, where not everything is.
	Readable []string `json:"readable,omitempty"`
	// Denied are paths that were put out of reach, the first [MaxReportPaths] of
	// DeniedCount; Closed those that stay read-only in what is writable.
	Denied      []string `json:"denied,omitempty"`
	DeniedCount int      `json:"denied_count,omitzero"`
	Closed      []string `json:"closed,omitempty"`
	// Missing are entries of the profile that led to nothing when it was applied.
	Missing []string `json:"missing,omitempty"`
	// Within is the plan hash of the sandbox of the subagent that spawned this one:
	// nothing was opened that it does not open. Narrowed are trees of the own
	// profile that it opens less far.
	Within   string   `json:"within,omitempty"`
	Narrowed []string `json:"narrowed,omitempty"`
	// Absent are protected names that did not exist. What is made under them is
	// moved aside at the end, see Quarantined of the snapshot.
	Absent []string `json:"absent,omitempty"`
	// LandlockABI is that of the kernel's rules in force, 0 for none.
	LandlockABI int `json:"landlock_abi,omitzero"`
	// Gaps names what this sandbox is known not to cover.
	Gaps []string `json:"gaps,omitempty"`
	// PlanHash is the SHA-256 of the plan that was applied.
	PlanHash string `json:"plan_hash,omitempty"`
}

// MaxReportPaths bounds each list of paths in a [SandboxReport].
const MaxReportPaths = 64

// SandboxHint says that a failure looks like a denial of the sandbox. It is drawn
// from what the command printed, so it may be wrong, unless it is Observed.
type SandboxHint struct {
	// Path is what was refused, Operation what: read, write or use the network.
	Path      string `json:"path,omitempty"`
	Operation string `json:"operation"`
	Profile   string `json:"profile"`
	Remedy    string `json:"remedy"`
	// Observed is true where the kernel's audit log names the refusal. It is read
	// only where it is on already.
	Observed bool `json:"observed,omitzero"`
}

// String says it in one line.
func (h SandboxHint) String() string {
	what := h.Operation
	if h.Path != "" {
		what += " " + h.Path
	}
	return fmt.Sprintf("it looks like sandbox profile %s refused to %s; %s", h.Profile, what, h.Remedy)
}
