package events

import (
	"time"
)

// RecordSchema is the version written into every [Record].
const RecordSchema = 1

// State is where a subagent stands in the coordinator.
type State string

// The states, in the order in which they are passed. A state is never left
// backwards; queued and pending may go straight to completed.
const (
	// StateQueued: accepted and durable, waiting for a slot.
	StateQueued State = "queued"
	// StatePending: has a slot; its process is being made.
	StatePending State = "pending"
	// StateActive: its process reported that it is confined and running.
	StateActive State = "active"
	// StateCompleted: ended; no process of it is left. Terminal.
	StateCompleted State = "completed"
)

// Status is the outcome as parents see it.
type Status string

// The statuses. The last three are terminal.
const (
	StatusInitializing Status = "initializing" // queued, or its process is being made
	StatusRunning      Status = "running"      // its process runs
	StatusCompleted    Status = "completed"    // it ended by itself and succeeded
	StatusFailed       Status = "failed"       // it failed, or could not be started
	StatusCancelled    Status = "cancelled"    // it was ended on request
)

// Terminal reports whether s is one of the three ends.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Reason says why a subagent ended as it did. Empty for a plain success.
type Reason string

// The reasons.
const (
	ReasonExit       Reason = "exit"       // the runner ended by itself with a failure
	ReasonUser       Reason = "user"       // a person cancelled it
	ReasonParent     Reason = "parent"     // the parent agent cancelled it
	ReasonPrompt     Reason = "prompt"     // its prompt was cancelled
	ReasonSession    Reason = "session"    // its session was cancelled
	ReasonDeadline   Reason = "deadline"   // it ran longer than max_runtime
	ReasonIdle       Reason = "idle"       // it was silent longer than idle_timeout
	ReasonStart      Reason = "start"      // it could not be started, or not in time
	ReasonCrash      Reason = "crash"      // its supervisor ended without a report
	ReasonShutdown   Reason = "shutdown"   // the coordinator was shut down
	ReasonMaxTurns   Reason = "max_turns"  // an agent used up its turns
	ReasonLimit      Reason = "limit"      // a limit refused or ended it: memory, disk, the host's processes
	ReasonSandbox    Reason = "sandbox"    // its sandbox could not be applied
	ReasonDependency Reason = "dependency" // something it needs failed (plans)
	ReasonFailFast   Reason = "fail_fast"  // another one of its run failed, and the plan says that ends it (plans)
)

// Process identifies a child across restarts of the coordinator and across
// reuse of its pid: all four must match. It is durable before the child is let
// go (two-phase fork).
type Process struct {
	PID int `json:"pid"`
	// StartTime is field 22 of /proc/PID/stat, in clock ticks since boot.
	StartTime uint64 `json:"start_time"`
	BootID    string `json:"boot_id"`
	// PIDNamespace is the inode of the child's own PID namespace; 0 under a
	// profile without one.
	PIDNamespace uint64 `json:"pid_namespace,omitzero"`
	// CgroupPath is the child's cgroup v2 leaf, if it has one.
	CgroupPath string `json:"cgroup_path,omitempty"`
	// Cgroups are the directories of further control groups of its tree, and
	// MemoryCgroup that of the one with its memory limit.
	Cgroups      []string `json:"cgroups,omitempty"`
	MemoryCgroup string   `json:"memory_cgroup,omitempty"`
}

// Exit is how the runner's process ended.
type Exit struct {
	// Code is the exit code, or nil if it was ended by a signal or is unknown.
	Code *int `json:"code"`
	// Signal is the name of the signal that ended it, such as "SIGTERM".
	Signal string `json:"signal,omitempty"`
	// UserMS, SystemMS and MaxRSSKiB are from the runner's rusage.
	UserMS    int64 `json:"user_ms,omitzero"`
	SystemMS  int64 `json:"system_ms,omitzero"`
	MaxRSSKiB int64 `json:"max_rss_kib,omitzero"`
}

// Output is captured stdout as it travels in replies and records. The whole is
// in the run directory.
type Output struct {
	// Text is all of it, or head and tail around a mark when Truncated.
	Text string `json:"output"`
	// Encoding is "base64" when the bytes are not UTF-8, else empty.
	Encoding string `json:"output_encoding,omitempty"`
	// Bytes is the size of the whole.
	Bytes     int64 `json:"output_bytes"`
	Truncated bool  `json:"output_truncated"`
	// Ref names the whole for the files service: "<id>/stdout.log".
	Ref string `json:"output_ref,omitempty"`
	// Path is the whole's path on the coordinator's machine.
	Path string `json:"output_path,omitempty"`
}

// Spec is a spawn as resolved and accepted: what spec.json holds. It contains
// everything needed to start the subagent again.
type Spec struct {
	Schema int    `json:"schema"`
	ID     string `json:"id"`
	Run    int    `json:"run"`
	// Request is the spawn as it came, ids and defaults filled in.
	Request Spawn `json:"request"`
	// Agent is the agent type as it was resolved; absent for a plain command.
	Agent *AgentSpec `json:"agent,omitempty"`
	// Depth is 0 for subagents of a client, the spawner's plus 1 for nested ones.
	Depth int `json:"depth"`
	// ParentID is the subagent that asked, empty for clients.
	ParentID string `json:"parent_id,omitempty"`
	// SpawnerPromptID is the turn of that subagent. Request has the prompt of the
	// subagent at the top.
	SpawnerPromptID string `json:"spawner_prompt_id,omitempty"`
	// Spawns says what it may spawn itself; absent: nothing.
	Spawns    *Spawns   `json:"spawns,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// Trace is where it stands in a distributed trace.
	Trace *Trace `json:"trace,omitempty"`
	// Resume is what it goes on from; absent for one that began anew.
	Resume *ResumeSource `json:"resume,omitempty"`
}

// Record is the durable state of one subagent: one key in the bucket
// hayward_subagents. It holds a digest of the spec and at most 4 KiB of output.
type Record struct {
	Schema int    `json:"schema"`
	ID     string `json:"id"`
	Run    int    `json:"run"`
	// Seq numbers the states of this record; the feed is ordered by it.
	Seq uint64 `json:"seq"`

	Name            string `json:"name,omitempty"`
	Description     string `json:"description,omitempty"`
	SubagentType    string `json:"subagent_type"`
	ParentSessionID string `json:"parent_session_id"`
	ParentPromptID  string `json:"parent_prompt_id,omitempty"`
	// ParentID is the subagent that asked for it, RootID the one at the top of the
	// tree; both are empty for subagents of clients. A nested one has the session and
	// the prompt of the top; SpawnerPromptID is the turn of ParentID.
	ParentID        string            `json:"parent_id,omitempty"`
	RootID          string            `json:"root_id,omitempty"`
	SpawnerPromptID string            `json:"spawner_prompt_id,omitempty"`
	Depth           int               `json:"depth"`
	ResumedFrom     string            `json:"resumed_from,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	// CommandLine is argv for people, shortened to 256 bytes.
	CommandLine string `json:"command_line,omitempty"`
	Cwd         string `json:"cwd"`
	Workspace   string `json:"workspace"`
	Isolation   string `json:"isolation"`
	SpecDigest  string `json:"spec_digest"`
	// Boundaries are context, identity, cwd, isolation and sandbox, each by itself.
	// Earlier versions did not write them.
	Boundaries *Boundaries `json:"boundaries,omitempty"`
	// Background is true when no caller waits for the result.
	Background bool `json:"background"`

	State        State  `json:"state"`
	Status       Status `json:"status"`
	Reason       Reason `json:"reason,omitempty"`
	Actor        string `json:"actor,omitempty"`
	ExplicitKill bool   `json:"explicit_kill,omitzero"`
	// PromptGate tells that its prompt was cancelled as a whole. Earlier versions
	// wrote it; the gate is now a [Gate] of its own.
	PromptGate bool   `json:"prompt_gate,omitzero"`
	Error      *Error `json:"error,omitempty"`

	CreatedAt time.Time  `json:"created_at"`
	PendingAt *time.Time `json:"pending_at,omitempty"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	// EndOrder numbers the ends of this coordinator: the order of completions.
	EndOrder uint64 `json:"end_order,omitzero"`

	MaxRuntimeMS int64 `json:"max_runtime_ms,omitzero"`
	// MaxMemoryBytes bounds the memory of the whole tree. 0: no bound.
	MaxMemoryBytes int64 `json:"max_memory_bytes,omitzero"`

	Process *Process       `json:"process,omitempty"`
	Sandbox *SandboxReport `json:"sandbox,omitempty"`
	// TokenHash is the SHA-256, in hex, of the child's bus credential.
	TokenHash string `json:"token_hash,omitempty"`
	// Trace is where it stands in a distributed trace.
	Trace *Trace `json:"trace,omitempty"`
	// TempDir is the subagent's own TMPDIR, removed at its end.
	TempDir    string  `json:"temp_dir,omitempty"`
	Exit       *Exit   `json:"exit,omitempty"`
	Output     *Output `json:"output,omitempty"`
	StderrTail string  `json:"stderr_tail,omitempty"`
	// Quarantined are files that were made under protected names which did not
	// exist before, where they are now: the next plain git command would have run
	// what they say.
	Quarantined []string `json:"quarantined,omitempty"`
	// SandboxHint is set where a failure looks like a denial of the sandbox.
	SandboxHint *SandboxHint `json:"sandbox_hint,omitempty"`
	// Worktree is set under isolation worktree, Changes from the end on.
	Worktree *Worktree `json:"worktree,omitempty"`
	Changes  *Changes  `json:"changes,omitempty"`
	// Agent is what an agent CLI said of its run.
	Agent *AgentResult `json:"agent,omitempty"`
	// Usage is what it used of models itself, TreeUsage that and what all below it
	// used, each run once. Both are written at the end.
	Usage     *Usage `json:"usage,omitempty"`
	TreeUsage *Usage `json:"tree_usage,omitempty"`

	// ReadAt is when a reader acknowledged the end; nil is unread.
	ReadAt *time.Time `json:"read_at,omitempty"`
}

// Fork is a child between its two phases: it exists and blocks on its start
// pipe until its identity is durable.
type Fork struct {
	Process   Process
	TokenHash string
	TempDir   string
	// Worktree is set under isolation worktree, Cwd is where in it the runner works.
	Worktree *Worktree
	Cwd      string
}

// End is how a child ended, said once no process of it is left.
type End struct {
	// Status is completed, failed or cancelled.
	Status     Status
	Reason     Reason
	Error      *Error
	Exit       *Exit
	Output     *Output
	StderrTail string
	// Quarantined are files that were moved aside, see [Snapshot].
	Quarantined []string
	// SandboxHint is set where the failure looks like a denial of the sandbox.
	SandboxHint *SandboxHint
	// Worktree and Changes are set under isolation worktree.
	Worktree *Worktree
	Changes  *Changes
	// Agent is what an agent CLI said of its run, nil for commands.
	Agent *AgentResult
	// Usage is what the run used of models, nil for nothing.
	Usage *Usage
	At    time.Time
	// NotRun says that an adopted child is known never to have been let go: it
	// may be started again.
	NotRun bool
}

// Stop asks for the end of a live child.
type Stop struct {
	Reason Reason
	// Kill skips the graceful steps. A later Stop with Kill escalates.
	Kill bool
}

// Live reports whether the subagent has not ended.
func (r *Record) Live() bool { return r.State != StateCompleted }

// Progress is the latest of a running subagent. It is kept beside the record
// and never durable.
type Progress struct {
	At time.Time `json:"at"`
	// LastLine is the last line of output, shortened to 200 bytes.
	LastLine    string `json:"last_line,omitempty"`
	StdoutBytes int64  `json:"stdout_bytes"`
	StderrBytes int64  `json:"stderr_bytes"`
	Processes   int    `json:"processes,omitzero"`
	// HeartbeatAt is when the supervisor was heard last. HeartbeatLost tells that
	// this is too long ago: it may be stopped or cut off, and may still work.
	HeartbeatAt   *time.Time `json:"heartbeat_at,omitempty"`
	HeartbeatLost bool       `json:"heartbeat_lost,omitzero"`
	// Agent is set for agents.
	Agent *AgentProgress `json:"agent,omitempty"`
	// Usage is what the gateway has counted for it, TreeUsage for it and all below.
	Usage     *Usage `json:"usage,omitempty"`
	TreeUsage *Usage `json:"tree_usage,omitempty"`
}

// Snapshot is one subagent as shown to parents and people.
type Snapshot struct {
	SubagentID      string `json:"subagent_id"`
	Run             int    `json:"run"`
	Name            string `json:"name,omitempty"`
	Description     string `json:"description,omitempty"`
	SubagentType    string `json:"subagent_type"`
	ParentSessionID string `json:"parent_session_id"`
	ParentPromptID  string `json:"parent_prompt_id,omitempty"`
	ParentID        string `json:"parent_id,omitempty"`
	// RootID is the subagent at the top of the tree of a nested one, and
	// SpawnerPromptID the turn of its parent; the session and the prompt above are
	// those of the top.
	RootID          string `json:"root_id,omitempty"`
	SpawnerPromptID string `json:"spawner_prompt_id,omitempty"`
	ResumedFrom     string `json:"resumed_from,omitempty"`
	// ContextSource is "new" or "resumed".
	ContextSource string            `json:"context_source"`
	Labels        map[string]string `json:"labels,omitempty"`
	CommandLine   string            `json:"command_line,omitempty"`
	Cwd           string            `json:"cwd"`
	Workspace     string            `json:"workspace"`
	Isolation     string            `json:"isolation"`
	// Boundaries are context, identity, cwd, isolation and sandbox, each by itself.
	Boundaries *Boundaries `json:"boundaries,omitempty"`
	Background bool        `json:"background"`

	State  State  `json:"state"`
	Status Status `json:"status"`
	// Success is null until the end, then whether Status is completed.
	Success      *bool  `json:"success"`
	Reason       Reason `json:"reason,omitempty"`
	Actor        string `json:"actor,omitempty"`
	ExplicitKill bool   `json:"explicit_kill,omitzero"`
	Error        *Error `json:"error,omitempty"`

	CreatedAt time.Time  `json:"created_at"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	// DurationMS is start to end; ElapsedMS is acceptance to now or the end.
	DurationMS int64 `json:"duration_ms"`
	ElapsedMS  int64 `json:"elapsed_ms"`

	// ExitCode is null until the end, and when a signal ended the runner.
	ExitCode *int   `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	Exit     *Exit  `json:"exit,omitempty"`
	Output
	StderrTail string `json:"stderr_tail,omitempty"`

	// Quarantined are files that were made under protected names which did not
	// exist before, where they are now: the next plain git command would have run
	// what they say.
	Quarantined []string `json:"quarantined,omitempty"`
	// SandboxHint is set where a failure looks like a denial of the sandbox.
	SandboxHint *SandboxHint `json:"sandbox_hint,omitempty"`
	// Worktree is set under isolation worktree, Changes from the end on.
	Worktree *Worktree `json:"worktree,omitempty"`
	Changes  *Changes  `json:"changes,omitempty"`
	// Agent is what an agent CLI said of its run, at the end of an agent.
	Agent *AgentResult `json:"agent,omitempty"`
	// Usage is what it used of models itself, TreeUsage that and what all below it
	// used, each run once. Set at the end; while it runs see Progress.
	Usage     *Usage `json:"usage,omitempty"`
	TreeUsage *Usage `json:"tree_usage,omitempty"`

	Sandbox  *SandboxReport `json:"sandbox,omitempty"`
	Process  *Process       `json:"process,omitempty"`
	Progress *Progress      `json:"progress,omitempty"`
	// Read tells whether a reader acknowledged the end.
	Read bool `json:"read"`
}

// FeedEvent is one state change on the public feed subject of a subagent, see
// [FeedSubject].
type FeedEvent struct {
	Seq        uint64    `json:"seq"`
	SubagentID string    `json:"subagent_id"`
	Run        int       `json:"run"`
	At         time.Time `json:"at"`
	State      State     `json:"state"`
	Status     Status    `json:"status"`
	Reason     Reason    `json:"reason,omitempty"`
	Session    string    `json:"parent_session_id"`
	Prompt     string    `json:"parent_prompt_id,omitempty"`
}
