package events

import (
	"encoding/json"
	"time"
)

// ChildSpec is what the supervisor in a child is told, through a descriptor
// that only it can read. It carries the child's bus token, so it is never
// written anywhere.
type ChildSpec struct {
	ID  string `json:"id"`
	Run int    `json:"run"`
	// Token is the bus credential of this child and run.
	Token string `json:"token"`
	// Argv, Env ("K=V") and Cwd are the command's own.
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Cwd  string   `json:"cwd"`
	// Prompt is written to the command's stdin in mode "prompt".
	Prompt string    `json:"prompt,omitempty"`
	Stdin  StdinMode `json:"stdin,omitempty"`
	// GraceMS is how long SIGTERM is given before SIGKILL.
	GraceMS int64 `json:"grace_ms"`
	// KillProofMS is how long a killed command is waited for before the supervisor
	// leaves it to the kernel.
	KillProofMS int64 `json:"kill_proof_ms"`
	// MaxRuntimeMS ends the run with reason deadline. 0: no bound.
	MaxRuntimeMS int64 `json:"max_runtime_ms"`
	// IdleTimeoutMS ends a run that writes nothing for that long with reason idle.
	// 0: no bound.
	IdleTimeoutMS int64 `json:"idle_timeout_ms,omitzero"`
	HeartbeatMS   int64 `json:"heartbeat_ms"`
	// Profile and Active repeat what is enforced, for the child's own check.
	Profile  string `json:"profile"`
	Enforced bool   `json:"enforced"`
	// Relay opens a listener on loopback for the agent inside, whose connections
	// are carried to the coordinator's gateway. [RelayAddress] in Argv and Env is
	// replaced by its address.
	Relay bool `json:"relay,omitzero"`
	// Door is the path of a socket to listen on for programs inside that ask the
	// coordinator in the subagent's name; empty for none.
	Door string `json:"door,omitempty"`
	// Direct gives the command the supervisor's own descriptors 0, 1 and 2, passes
	// signals on to it, and takes part in no bus.
	Direct bool `json:"direct,omitzero"`
	// ItemsBefore are already in the transcript, of the run that is resumed.
	ItemsBefore uint64 `json:"items_before,omitzero"`
	// Adapter is set where the command is an agent CLI whose stdout is read as a
	// stream of events.
	Adapter *AdapterSpec `json:"adapter,omitempty"`
}

// RelayAddress stands in [ChildSpec] for the HOST:PORT of the relay's listener.
const RelayAddress = "{hayward-relay}"

// Started is a child's first report: confined, and the runner was started.
type Started struct {
	ID  string    `json:"id"`
	Run int       `json:"run"`
	At  time.Time `json:"at"`
	// RunnerPID is the command's pid inside the child's PID namespace.
	RunnerPID int `json:"runner_pid"`
}

// Heartbeat tells that the supervisor is alive.
type Heartbeat struct {
	ID       string   `json:"id"`
	Run      int      `json:"run"`
	Progress Progress `json:"progress"`
}

// ItemKind says what an [Item] is.
type ItemKind string

// The item kinds of the command runner.
const (
	ItemPrompt  ItemKind = "prompt"  // what was written to stdin at the start
	ItemCommand ItemKind = "command" // the command that was started
	ItemOutput  ItemKind = "output"  // a part of stdout or stderr
	ItemExit    ItemKind = "exit"    // how the command ended
	ItemNote    ItemKind = "note"    // a remark of the supervisor
)

// The further item kinds of an agent.
const (
	ItemSession    ItemKind = "session"     // the agent's session began; Model is its model
	ItemMessage    ItemKind = "message"     // text that the agent said
	ItemThinking   ItemKind = "thinking"    // text that it thought
	ItemToolCall   ItemKind = "tool_call"   // a tool that it called, with Input
	ItemToolResult ItemKind = "tool_result" // what the tool gave back
	ItemResult     ItemKind = "result"      // how the agent says that it ended, with the Usage of all of it
	ItemEvent      ItemKind = "event"       // anything else in its stream; Tool is the name of the event
)

// Item is one line of transcript.jsonl and one message on the child's item
// subject. Output items on the bus carry at most 16 KiB of text; when the bus
// is slower than the output, several are merged and the text left out, so a
// reader that wants every byte follows the file by Offset.
//
// An item of an agent is made from one line of stdout, which Offset and Bytes
// name. TextOmitted then tells that the line has more of Text or Input than the
// item.
type Item struct {
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	Kind ItemKind  `json:"kind"`
	// Stream is "stdout" or "stderr" for output items; Offset and Bytes say which
	// part of that stream's file this is.
	Stream string `json:"stream,omitempty"`
	Offset int64  `json:"offset,omitzero"`
	Bytes  int64  `json:"bytes,omitzero"`
	// Text is the content, TextOmitted true when Bytes of it were left out.
	Text        string   `json:"text,omitempty"`
	TextOmitted bool     `json:"text_omitted,omitzero"`
	Encoding    string   `json:"encoding,omitempty"`
	Argv        []string `json:"argv,omitempty"`
	Exit        *Exit    `json:"exit,omitempty"`

	// The following belong to agents.

	// Tool names the tool and ToolID this call of it; the result of the call has
	// the same. ParentToolID is the call that the item happened in, for an agent
	// inside the agent.
	Tool         string `json:"tool,omitempty"`
	ToolID       string `json:"tool_id,omitempty"`
	ParentToolID string `json:"parent_tool_id,omitempty"`
	// Input is the call's, a JSON value.
	Input json.RawMessage `json:"input,omitempty"`
	// IsError tells that the tool, or the agent, failed.
	IsError   bool   `json:"is_error,omitzero"`
	SessionID string `json:"session_id,omitempty"`
	Model     string `json:"model,omitempty"`
	// MessageID is the answer of the model that the item is of.
	MessageID  string     `json:"message_id,omitempty"`
	Usage      *Usage     `json:"usage,omitempty"`
	StopReason StopReason `json:"stop_reason,omitempty"`

	// From is the subagent that a resumed one has the item of: Offset is then in
	// that one's files. Absent for its own.
	From string `json:"from,omitempty"`
	// Synthetic tells that the item was put in when the conversation was taken up:
	// the result of a call that a crash left without one.
	Synthetic bool `json:"synthetic,omitzero"`
}

// Report is report.json: written by the child through a descriptor before it
// exits, and the only source of result and usage. The message on the child's
// result subject is a fast copy of it.
type Report struct {
	Schema int       `json:"schema"`
	ID     string    `json:"id"`
	Run    int       `json:"run"`
	At     time.Time `json:"at"`
	// Exit is how the runner ended; nil if it never started.
	Exit *Exit `json:"exit,omitempty"`
	// Ended is why the supervisor ended the runner: empty (by itself), deadline,
	// idle, or the reason of the stop that it was told.
	Ended Reason `json:"ended,omitempty"`
	// Error is set when the runner could not be started.
	Error       *Error `json:"error,omitempty"`
	StdoutBytes int64  `json:"stdout_bytes"`
	StderrBytes int64  `json:"stderr_bytes"`
	// StderrTail are the last lines of stderr, at most 4 KiB, valid UTF-8.
	StderrTail string `json:"stderr_tail,omitempty"`
	LastLine   string `json:"last_line,omitempty"`

	// Agent is what an agent CLI said of its run, and Answer its last text, whole.
	Agent  *AgentResult `json:"agent,omitempty"`
	Answer string       `json:"answer,omitempty"`
	// AgentError and AgentReason are why an agent that ran did not succeed.
	AgentError  *Error `json:"agent_error,omitempty"`
	AgentReason Reason `json:"agent_reason,omitempty"`
}

// ControlKind says what a [Control] asks of a child.
type ControlKind string

// The control messages. A child answers each with a [ControlReply].
const (
	// ControlStop: close stdin, SIGTERM to the runner's group, grace, end.
	ControlStop ControlKind = "stop"
	// ControlStdin: write Data at Offset to the runner's stdin.
	ControlStdin ControlKind = "stdin"
	// ControlPing: answer.
	ControlPing ControlKind = "ping"
)

// Control is a message to a child, on [ControlSubject].
type Control struct {
	Kind   ControlKind `json:"kind"`
	Reason Reason      `json:"reason,omitempty"`
	// Data, Offset and EOF belong to ControlStdin. Data is at most 64 KiB. A
	// repeated Offset is answered and not written twice.
	Data   []byte `json:"data,omitempty"`
	Offset int64  `json:"offset,omitzero"`
	EOF    bool   `json:"eof,omitzero"`
}

// ControlReply answers a [Control].
type ControlReply struct {
	OK bool `json:"ok"`
	// Offset is how much of stdin has been taken so far; Closed that the runner
	// reads no more.
	Offset int64 `json:"offset,omitzero"`
	Closed bool  `json:"closed,omitzero"`
}
