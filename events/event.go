package events

import "encoding/json"

// Kind names one of the six events. It is the last token of the request
// subject, see [RequestSubject].
type Kind string

// The six events.
const (
	KindSpawn       Kind = "spawn"       // start a subagent
	KindQuery       Kind = "query"       // read subagents, or wait for them
	KindCancel      Kind = "cancel"      // end subagents
	KindListActive  Kind = "list_active" // list those that have not ended
	KindCompletions Kind = "completions" // read ends that nobody has read yet
	KindOutstanding Kind = "outstanding" // ask what holds a parent's turn open
)

// Kinds lists the six events in the order of the documentation.
var Kinds = []Kind{KindSpawn, KindQuery, KindCancel, KindListActive, KindCompletions, KindOutstanding}

// SubagentEvent is the sealed sum of the six requests. Only types of this
// package implement it.
type SubagentEvent interface {
	// EventKind tells which of the six this is.
	EventKind() Kind
	// Validate lists every fault of the request at once as one
	// [CodeInvalidRequest] error, or returns nil.
	Validate() *Error

	isSubagentEvent()
}

// Spawn asks for one subagent. The reply is [SpawnReply].
type Spawn struct {
	// ParentSessionID is the session that owns the subagent. Required.
	ParentSessionID string `json:"parent_session_id"`
	// ID is the subagent's id if the caller mints it (a UUID, version 7
	// recommended); empty lets the coordinator mint one.
	ID string `json:"id,omitempty"`
	// Name is a short name, unique among the live subagents of the session.
	Name string `json:"name,omitempty"`
	// Prompt is the task. The command runner writes it to the command's stdin.
	// At most 256 KiB.
	Prompt string `json:"prompt,omitempty"`
	// PromptFile is the absolute path of a file that holds the prompt; it is
	// read when the subagent starts. Excludes Prompt.
	PromptFile string `json:"prompt_file,omitempty"`
	// Stdin is how a command's stdin is fed: "prompt" (default: the prompt, then
	// end of file) or "stream" (what the client sends through the files service).
	Stdin StdinMode `json:"stdin,omitempty"`
	// Description labels the subagent for people, three to five words.
	Description string `json:"description,omitempty"`
	// SubagentType names the agent definition; "command" runs Command as it is
	// and is the default when Command is set.
	SubagentType string `json:"subagent_type,omitempty"`
	// Command is the argv of the command runner. Never passed to a shell. Where it
	// runs an agent that Hayward knows, by its base name (claude, codex), it is run
	// as that agent unless Raw is set.
	Command []string `json:"command,omitempty"`
	Raw     bool     `json:"raw,omitzero"`
	// ParentPromptID is the turn of the parent that asked; the scope of a cancel
	// by prompt and of [Outstanding].
	ParentPromptID string `json:"parent_prompt_id,omitempty"`
	// ResumeFrom is a finished subagent of the same session, by id or name, to go on
	// from: with its conversation, its type, persona and model, its directory and,
	// where this request says nothing else, the rest of its request. The prompt is
	// what it is told next. See docs/resume.md.
	ResumeFrom string `json:"resume_from,omitempty"`
	// MaxContextPercent bounds how much of the model's context window the
	// conversation of ResumeFrom may take. It only ever lowers the coordinator's
	// bound. 0: that bound.
	MaxContextPercent int `json:"max_context_percent,omitzero"`
	// Cwd is the absolute working directory. Default: the workspace.
	Cwd string `json:"cwd,omitempty"`
	// Workspace is the absolute directory that the sandbox makes writable.
	// Default: the git repository around Cwd, else Cwd.
	Workspace string `json:"workspace,omitempty"`
	// AddDirs are further absolute directories to make writable.
	AddDirs []string `json:"add_dirs,omitempty"`
	// Deny are further paths and patterns to put out of reach, as in a sandbox
	// profile: relative ones are below the workspace, "~/" is the home directory.
	Deny []string `json:"deny,omitempty"`
	// Isolation is the file space: "none" (default) or "worktree". "None",
	// "Worktree", "work_tree" and "work-tree" are read as these.
	Isolation string `json:"isolation,omitempty"`
	// Sandbox is the profile's name. Default: "workspace".
	Sandbox string `json:"sandbox,omitempty"`
	// SandboxBestEffort lets the spawn go on with what the kernel can enforce;
	// what is missing is recorded as gaps. Without it a missing layer is a refusal.
	SandboxBestEffort bool `json:"sandbox_best_effort,omitzero"`
	// Model, Persona and CapabilityMode override the agent definition.
	Model          string `json:"model,omitempty"`
	Persona        string `json:"persona,omitempty"`
	CapabilityMode string `json:"capability_mode,omitempty"`
	// RunInBackground returns as soon as the spawn is durable. Default false.
	RunInBackground bool `json:"run_in_background"`
	// AwaitBudgetMS bounds how long a foreground spawn holds its caller; then the
	// reply is backgrounded and the subagent goes on. Absent: the coordinator's
	// default; 0: no bound.
	AwaitBudgetMS *int64 `json:"await_budget_ms,omitzero"`
	// MaxRuntimeMS bounds the run, from start. Absent: the coordinator's default.
	MaxRuntimeMS *int64 `json:"max_runtime_ms,omitzero"`
	// MaxMemoryBytes bounds the memory, swap included, of the whole process tree.
	// Absent: the coordinator's default; 0: no bound. A bound that this machine
	// cannot set is a refusal.
	MaxMemoryBytes *int64 `json:"max_memory_bytes,omitzero"`
	// IdleTimeoutMS bounds silence of an agent. Commands have none unless set.
	IdleTimeoutMS *int64 `json:"idle_timeout_ms,omitzero"`
	// Env is the environment added to the allow-listed base. Names that load code
	// into other programs (LD_PRELOAD and the like) are refused.
	Env map[string]string `json:"env,omitempty"`
	// Labels are free key-value pairs to select by. At most 64.
	Labels map[string]string `json:"labels,omitempty"`
	// Inputs maps a name to the id of a finished subagent of the same session; its
	// whole stdout is readable at the path in HAYWARD_INPUT_<name>.
	Inputs map[string]string `json:"inputs,omitempty"`
	// MaySpawn are the types that it may spawn itself, within the limit of depth; "*"
	// is any. Absent: for an agent what its type allows, for a command none. It
	// narrows what the type allows and never widens it. At most 64.
	MaySpawn []string `json:"may_spawn,omitempty"`
	// Reopen lifts the refusal of spawns of ParentPromptID that a cancel left, for
	// this and later ones. Only for clients.
	Reopen bool `json:"reopen,omitzero"`
	// OutputSchema is a JSON Schema that the result must meet (agents only). A result
	// that does not is a failure, output_mismatch.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// RequireNoDenials makes a denied tool call a failure of the run (agents only).
	RequireNoDenials bool `json:"require_no_denials,omitzero"`
}

// The file spaces that [Spawn] may ask for.
const (
	IsolationNone     = "none"     // the directory itself, shared with others
	IsolationWorktree = "worktree" // a working tree of its own
)

// StdinMode is how a command's stdin is fed.
type StdinMode string

// The ways to feed a command's stdin.
const (
	StdinPrompt StdinMode = "prompt" // the prompt, then end of file
	StdinStream StdinMode = "stream" // what the client sends
)

// SpawnReply answers [Spawn]: the result of a foreground subagent, or its
// acceptance.
type SpawnReply struct {
	Snapshot
	// Accepted is true once the spawn is durable.
	Accepted bool `json:"accepted"`
	// Backgrounded is true when the subagent goes on after this reply. Success is
	// then null.
	Backgrounded bool     `json:"backgrounded"`
	Warnings     []string `json:"warnings,omitempty"`
}

// Query reads, and on request waits for, subagents by id. The reply is [QueryReply].
type Query struct {
	// ParentSessionID, when present, makes ids of other sessions look unknown.
	ParentSessionID string `json:"parent_session_id,omitempty"`
	// IDs are 1 to 100 subagent ids, names or unambiguous id endings of four
	// or more characters.
	IDs []string `json:"ids"`
	// Block waits until Mode is met or the deadline passes.
	Block bool `json:"block,omitzero"`
	// Mode is what a blocking query waits for. Default "all".
	Mode QueryMode `json:"mode,omitempty"`
	// Count is how many must have ended in mode "count".
	Count int `json:"count,omitzero"`
	// TimeoutMS bounds a blocking query. Default 30 000, at most 600 000.
	TimeoutMS *int64 `json:"timeout_ms,omitzero"`
	// MarkRead counts terminal snapshots as read once the client acknowledged
	// the reply.
	MarkRead bool `json:"mark_read,omitzero"`
}

// QueryMode is what a blocking query waits for.
type QueryMode string

// The query modes.
const (
	QueryAll   QueryMode = "all"   // every id has ended
	QueryAny   QueryMode = "any"   // one of the ids has ended
	QueryCount QueryMode = "count" // as many as count have ended
)

// QueryReply answers [Query], one snapshot for each id, in the order asked.
type QueryReply struct {
	Snapshots []Snapshot `json:"snapshots"`
	// Unknown lists the ids asked for that name nothing the caller may see; they
	// have no snapshot.
	Unknown []string `json:"unknown,omitempty"`
	// TimedOut is true when the deadline passed before Mode was met; the
	// snapshots are as of then.
	TimedOut bool     `json:"timed_out"`
	Warnings []string `json:"warnings,omitempty"`
}

// Cancel ends subagents. Exactly one target is set. The reply is [CancelReply],
// sent when no process of the targets is left or the deadline passed.
type Cancel struct {
	// ParentSessionID scopes the target. Required with ParentPromptID.
	ParentSessionID string       `json:"parent_session_id,omitempty"`
	Target          CancelTarget `json:"target"`
	// Kill skips the graceful steps.
	Kill bool `json:"kill,omitzero"`
	// Reason and Actor are recorded. Default reason "user".
	Reason Reason `json:"reason,omitempty"`
	Actor  string `json:"actor,omitempty"`
	// TimeoutMS bounds the reply. Default 30 000.
	TimeoutMS *int64 `json:"timeout_ms,omitzero"`
	// DryRun lists what would be cancelled and changes nothing.
	DryRun bool `json:"dry_run,omitzero"`
}

// CancelTarget selects what a [Cancel] ends. Exactly one member is set.
type CancelTarget struct {
	// IDs are subagent ids, names or unambiguous id endings.
	IDs []string `json:"ids,omitempty"`
	// ParentPromptID selects all subagents of that prompt of the session,
	// background ones too, and refuses later spawns of it.
	ParentPromptID string `json:"parent_prompt_id,omitempty"`
	// Session selects all live subagents of the session in ParentSessionID.
	Session bool `json:"session,omitzero"`
	// Label selects by labels, all of which must match.
	Label map[string]string `json:"label,omitempty"`
}

// CancelReply answers [Cancel] with one entry for each subagent selected,
// oldest first.
type CancelReply struct {
	Results  []CancelResult `json:"results"`
	Warnings []string       `json:"warnings,omitempty"`
}

// CancelOutcome says what a cancel did.
type CancelOutcome string

// The outcomes of a cancel.
const (
	// CancelCancelled: the subagent has ended and no process of it is left.
	CancelCancelled CancelOutcome = "cancelled"
	// CancelAlreadyFinished: it had ended before; Status tells how.
	CancelAlreadyFinished CancelOutcome = "already_finished"
	// CancelNotFound: no such subagent in the caller's scope.
	CancelNotFound CancelOutcome = "not_found"
	// CancelDraining: the deadline passed while processes were left.
	CancelDraining CancelOutcome = "draining"
	// CancelWouldCancel: a dry run would have cancelled it.
	CancelWouldCancel CancelOutcome = "would_cancel"
)

// CancelResult is what a cancel did to one subagent.
type CancelResult struct {
	SubagentID string        `json:"subagent_id"`
	Name       string        `json:"name,omitempty"`
	Outcome    CancelOutcome `json:"outcome"`
	Status     Status        `json:"status,omitempty"`
	// Background tells whether nobody was waiting for it.
	Background bool `json:"background"`
}

// ListActive lists subagents that have not ended. The reply is [ListActiveReply].
type ListActive struct {
	ParentSessionID string `json:"parent_session_id,omitempty"`
	// IncludeFinished also lists the finished ones still retained.
	IncludeFinished bool `json:"include_finished,omitzero"`
	// SinceMS keeps finished ones that ended at most that long ago.
	SinceMS *int64 `json:"since_ms,omitzero"`
	// After continues a listing behind the id in the last reply's Next.
	After string `json:"after,omitempty"`
	// Max bounds the page. Default and maximum 100.
	Max int `json:"max,omitzero"`
}

// ListActiveReply answers [ListActive], oldest first.
type ListActiveReply struct {
	Subagents []Snapshot `json:"subagents"`
	// Next, when set, is the After of the next page.
	Next     string   `json:"next,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Completions reads finished and unread subagents of a session. The reply is
// [CompletionsReply].
type Completions struct {
	ParentSessionID string `json:"parent_session_id"`
	// SuppressIDs are left out of this answer and stay unread.
	SuppressIDs []string `json:"suppress_ids,omitempty"`
	// AckIDs marks these ids, or dedupe ids, as read.
	AckIDs []string `json:"ack_ids,omitempty"`
	// LeaseMS hides the entries returned from other readers that long; without
	// an acknowledgement they come back. Default 5 000.
	LeaseMS *int64 `json:"lease_ms,omitzero"`
	// Peek returns entries without leasing them.
	Peek bool `json:"peek,omitzero"`
	// Max bounds the entries returned. Default and maximum 100; 0 with AckIDs
	// only acknowledges.
	Max *int `json:"max,omitzero"`
}

// CompletionsReply answers [Completions], in order of completion.
type CompletionsReply struct {
	Completions []Completion `json:"completions"`
	// Acked are the ids that AckIDs marked as read.
	Acked []string `json:"acked,omitempty"`
	// More is true when unread entries were left out by Max.
	More     bool     `json:"more,omitzero"`
	Warnings []string `json:"warnings,omitempty"`
}

// Completion is one finished, unread subagent.
type Completion struct {
	Snapshot
	// DedupeID is "<id>.<run>", see the function of that name: equal for every
	// delivery of the same end.
	DedupeID string `json:"dedupe_id"`
}

// Outstanding asks what of a prompt still holds the parent's turn open. The
// reply is [OutstandingReply].
type Outstanding struct {
	ParentSessionID string `json:"parent_session_id"`
	ParentPromptID  string `json:"parent_prompt_id"`
}

// OutstandingReply answers [Outstanding].
type OutstandingReply struct {
	// LiveIDs are live foreground subagents, sorted: they hold the turn open.
	LiveIDs []string `json:"live_ids"`
	// BackgroundLive is true when background subagents of the prompt live.
	BackgroundLive bool `json:"background_live"`
	// Unread counts finished subagents of the prompt that nobody has read.
	Unread int `json:"unread"`
	// UsageSettled is true when the usage of every ended subagent is known.
	UsageSettled bool     `json:"usage_settled"`
	Warnings     []string `json:"warnings,omitempty"`
}

// EventKind implements [SubagentEvent].
func (Spawn) EventKind() Kind       { return KindSpawn }
func (Query) EventKind() Kind       { return KindQuery }
func (Cancel) EventKind() Kind      { return KindCancel }
func (ListActive) EventKind() Kind  { return KindListActive }
func (Completions) EventKind() Kind { return KindCompletions }
func (Outstanding) EventKind() Kind { return KindOutstanding }

func (Spawn) isSubagentEvent()       {}
func (Query) isSubagentEvent()       {}
func (Cancel) isSubagentEvent()      {}
func (ListActive) isSubagentEvent()  {}
func (Completions) isSubagentEvent() {}
func (Outstanding) isSubagentEvent() {}
