package events

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// ErrorLayer says who refused.
type ErrorLayer string

// The layers of an [Error].
const (
	LayerGate        ErrorLayer = "gate"        // it cannot be done as asked
	LayerPermission  ErrorLayer = "permission"  // the caller may not
	LayerWorkspace   ErrorLayer = "workspace"   // files or git failed
	LayerSandbox     ErrorLayer = "sandbox"     // the operating system refused
	LayerCoordinator ErrorLayer = "coordinator" // the coordinator itself
)

// Code is the stable name of an error.
type Code string

// The error codes.
const (
	CodeInvalidRequest     Code = "invalid_request"        // the body is not a valid request; details name members
	CodeTooLarge           Code = "too_large"              // a body or member is over its size
	CodeInvalidID          Code = "invalid_id"             // an id is malformed
	CodeDuplicateID        Code = "duplicate_id"           // the id is taken; its subagent is untouched
	CodeDuplicateName      Code = "duplicate_name"         // a live subagent of the session has the name
	CodeUnknownID          Code = "unknown_id"             // nothing the caller may see has the id
	CodeAmbiguousID        Code = "ambiguous_id"           // the id's ending fits several
	CodeUnknownType        Code = "unknown_type"           // no such subagent type; details list the known
	CodeNoModelAccess      Code = "no_model_access"        // an agent has neither a key at the gateway nor a log-in
	CodeMissingCommand     Code = "missing_command"        // the command runner has no command
	CodeCommandNotFound    Code = "command_not_found"      // the command's program does not exist
	CodeCommandNotExec     Code = "command_not_executable" // the command's program cannot be executed
	CodeCwdMissing         Code = "cwd_missing"            // the working directory does not exist or is no directory
	CodeWorkspaceRefused   Code = "workspace_refused"      // the workspace is too wide to open by default
	CodePromptFile         Code = "prompt_file_unreadable" // the prompt file cannot be read
	CodeInputMissing       Code = "input_missing"          // an input is not a finished subagent of the session
	CodeUnsupported        Code = "unsupported"            // this build does not have what was asked
	CodePromptCancelled    Code = "prompt_cancelled"       // the prompt was cancelled before
	CodeBusy               Code = "busy"                   // the intake is full; details carry depth
	CodeLimit              Code = "limit"                  // a limit refused the spawn
	CodeStorageFull        Code = "storage_full"           // no space for records; running subagents go on
	CodeStorageFailed      Code = "storage_failed"         // a record could not be made durable
	CodeStoreConflict      Code = "store_conflict"         // a second writer
	CodeStoreDamaged       Code = "store_damaged"          // the store lost what the run directories still have
	CodeShuttingDown       Code = "shutting_down"          // the coordinator takes no more requests
	CodeSandboxUnavailable Code = "sandbox_unavailable"    // the profile cannot be enforced here
	CodeSandboxFailed      Code = "sandbox_failed"         // a step of applying the sandbox failed
	CodeUnknownProfile     Code = "unknown_profile"        // no such sandbox profile; details list the known
	CodeStartFailed        Code = "start_failed"           // a step of the start failed and was undone
	CodeStartTimeout       Code = "start_timeout"          // the child did not report in time
	CodeChildCrashed       Code = "child_crashed"          // the supervisor ended without a report
	CodeAgentFailed        Code = "agent_failed"           // an agent says that it failed
	CodeAgentIncomplete    Code = "agent_incomplete"       // an agent stopped before its natural end
	CodeModelFailed        Code = "model_failed"           // the model API answered an agent with an error
	CodeRateLimited        Code = "rate_limited"           // the model API refused for its rate limit
	CodeOverloaded         Code = "overloaded"             // the model API is overloaded, or its answer was cut
	CodeToolDenied         Code = "tool_denied"            // a tool call was denied, and the run may have none
	CodeOutputMismatch     Code = "output_mismatch"        // an agent's result does not meet the output_schema
	CodeNotRunning         Code = "not_running"            // the subagent does not run (any more)
	CodeForbidden          Code = "forbidden"              // the caller may not ask this
	CodeSpawnNotAllowed    Code = "spawn_not_allowed"      // the subagent that asks may not spawn that type; details list what it may
	CodeDepthExceeded      Code = "depth_exceeded"         // subagents may not be nested that deep; details carry max
	CodeNotRepository      Code = "not_a_repository"       // there is no git repository to make a worktree of
	CodeRepositoryRefused  Code = "repository_refused"     // a worktree cannot hold what the repository has; details name the reason
	CodeGitFailed          Code = "git_failed"             // git failed; details carry what it said
	CodeWorktreeFailed     Code = "worktree_failed"        // a step of making or saving a worktree failed
	CodeWouldLose          Code = "would_lose"             // only force does it: something would be lost
	CodeResumeNotFound     Code = "resume_not_found"       // there is no such subagent in the session to resume
	CodeResumeLive         Code = "resume_live"            // the subagent to resume has not ended
	CodeResumeNested       Code = "resume_nested"          // the subagent to resume was spawned by another, within whose bounds it ran
	CodeResumeType         Code = "resume_type"            // the subagent to resume is of another type, or its type is run otherwise now
	CodeResumePersona      Code = "resume_persona"         // the subagent to resume has another persona
	CodeResumePersonaGone  Code = "resume_persona_gone"    // the persona of the subagent to resume cannot be had any more
	CodeResumeModelGone    Code = "resume_model_gone"      // the pinned model is in no table of models, or marked as gone
	CodeResumeUnreadable   Code = "resume_unreadable"      // the transcript to resume cannot be read
	CodeResumeEmpty        Code = "resume_empty"           // the transcript to resume is empty
	CodeResumeTooLong      Code = "resume_too_long"        // the conversation takes too much of the model's context window
	CodeResumeSessionGone  Code = "resume_session_gone"    // the agent's own session is not in its kept home
	CodeResumeWorktreeGone Code = "resume_worktree_gone"   // neither the working tree to resume nor its snapshot is there
	CodeResumeCwdGone      Code = "resume_cwd_gone"        // the directory that the subagent to resume worked in is gone
	CodeResumeCopyFailed   Code = "resume_copy_failed"     // the conversation could not be copied; nothing of it is left
	CodeTimeout            Code = "timeout"                // the deadline passed first
	CodeUnreachable        Code = "unreachable"            // no coordinator answers
	CodeInternal           Code = "internal"               // a fault of the coordinator itself
)

// Error is every refusal and failure on the wire. It names the operation and
// the id in Message and the way on in Remedy.
type Error struct {
	Code    Code              `json:"code"`
	Layer   ErrorLayer        `json:"layer"`
	Message string            `json:"message"`
	Remedy  string            `json:"remedy,omitempty"`
	Details map[string]string `json:"details,omitempty"`

	cause error
}

// Errorf makes an error; a %w operand becomes its cause.
func Errorf(code Code, layer ErrorLayer, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Layer: layer, Message: wrapped.Error(), cause: errors.Unwrap(wrapped)}
}

// WithRemedy sets the way on and returns e.
func (e *Error) WithRemedy(format string, args ...any) *Error {
	e.Remedy = fmt.Sprintf(format, args...)
	return e
}

// WithDetail adds one detail and returns e.
func (e *Error) WithDetail(key, value string) *Error {
	if e.Details == nil {
		e.Details = make(map[string]string)
	}
	e.Details[key] = value
	return e
}

// Error implements error: the message, then the details sorted by name, then
// the remedy.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	keys := make([]string, 0, len(e.Details))
	for k := range e.Details {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Fprintf(&b, "; %s: %s", k, e.Details[k])
	}
	if e.Remedy != "" {
		b.WriteString(" (")
		b.WriteString(e.Remedy)
		b.WriteString(")")
	}
	return b.String()
}

// Unwrap returns the cause, which does not travel.
func (e *Error) Unwrap() error { return e.cause }

// Is matches another *Error by code, so errors.Is(err, &Error{Code: c}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// AsError returns err as an *Error, wrapping it as [CodeInternal] if it is none.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Layer: LayerCoordinator, Message: err.Error(), cause: err}
}

// HasCode reports whether err is or wraps an *Error with that code.
func HasCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
