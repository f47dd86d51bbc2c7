package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxFaults bounds the list in one error, so that the error of the worst
// request still fits into a reply.
const maxFaults = 20

// faults collects what is wrong with a request, so that one error lists all.
type faults struct {
	list    []string
	code    Code
	further int
}

func (f *faults) add(code Code, format string, args ...any) {
	if f.code == "" {
		f.code = code
	}
	if len(f.list) == maxFaults {
		f.further++
		return
	}
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

func (f *faults) error(k Kind) *Error {
	if len(f.list) == 0 {
		return nil
	}
	if f.further > 0 {
		f.list = append(f.list, fmt.Sprintf("and %d more", f.further))
	}
	return Errorf(f.code, LayerGate, "%s: %s", k, strings.Join(f.list, "; "))
}

func (f *faults) scope(member, s string, required bool) {
	switch {
	case s == "" && required:
		f.add(CodeInvalidRequest, "%s is required", member)
	case s != "" && !ValidScope(s):
		f.add(CodeInvalidRequest, "%s %q is not 1 to 128 of A-Z a-z 0-9 _ . : -", member, clip(s))
	}
}

// word checks a member that names a definition of the coordinator's machine.
func (f *faults) word(member, s string) {
	if len(s) > MaxWord || strings.IndexFunc(s, unicode.IsControl) >= 0 {
		f.add(CodeInvalidRequest, "%s %q is over %d bytes or holds control characters", member, clip(s), MaxWord)
	}
}

func (f *faults) path(member, p string) {
	switch {
	case p == "":
	case !filepath.IsAbs(p):
		f.add(CodeInvalidRequest, "%s %q is not an absolute path", member, clip(p))
	case len(p) > MaxPathBytes || strings.ContainsRune(p, 0):
		f.add(CodeInvalidRequest, "%s is not a path", member)
	}
}

func (f *faults) millis(member string, v *int64, most int64) {
	if v != nil && (*v < 0 || *v > most) {
		f.add(CodeInvalidRequest, "%s %d is not between 0 and %d", member, *v, most)
	}
}

func (f *faults) refs(member string, refs []string, most int) {
	if len(refs) > most {
		f.add(CodeInvalidRequest, "%s has %d entries, the limit is %d", member, len(refs), most)
	}
	for _, r := range refs {
		if !ValidRef(r) {
			f.add(CodeInvalidID, "%s: %q is neither an id nor a name", member, clip(r))
		}
	}
}

// Validate implements [SubagentEvent].
func (s Spawn) Validate() *Error {
	var f faults
	f.scope("parent_session_id", s.ParentSessionID, true)
	f.scope("parent_prompt_id", s.ParentPromptID, false)
	if s.Reopen && s.ParentPromptID == "" {
		f.add(CodeInvalidRequest, "reopen goes with parent_prompt_id")
	}
	if s.ID != "" && !ValidID(s.ID) {
		f.add(CodeInvalidID, "id %q is not a UUID in lower case", clip(s.ID))
	}
	if s.ResumeFrom != "" && !ValidRef(s.ResumeFrom) {
		f.add(CodeInvalidID, "resume_from %q is neither an id nor a name", clip(s.ResumeFrom))
	}
	if s.MaxContextPercent < 0 || s.MaxContextPercent > 100 {
		f.add(CodeInvalidRequest, "max_context_percent %d is not between 1 and 100", s.MaxContextPercent)
	}
	if s.Name != "" && !ValidName(s.Name) {
		f.add(CodeInvalidRequest, "name %q is not 1 to 64 of A-Z a-z 0-9 _ . - beginning with a letter or digit", clip(s.Name))
	}
	if ValidID(s.Name) {
		f.add(CodeInvalidRequest, "name %q could be taken for an id", s.Name)
	}
	if len(s.Prompt) > MaxPrompt {
		f.add(CodeTooLarge, "prompt has %d bytes, the limit is %d: use prompt_file", len(s.Prompt), MaxPrompt)
	}
	if s.Prompt != "" && s.PromptFile != "" {
		f.add(CodeInvalidRequest, "prompt and prompt_file exclude each other")
	}
	f.path("prompt_file", s.PromptFile)
	switch s.Stdin {
	case "", StdinPrompt:
	case StdinStream:
		if s.Prompt != "" || s.PromptFile != "" {
			f.add(CodeInvalidRequest, "stdin stream excludes a prompt")
		}
	default:
		f.add(CodeInvalidRequest, "stdin %q is neither prompt nor stream", clip(string(s.Stdin)))
	}
	if len(s.Description) > MaxDescription {
		f.add(CodeTooLarge, "description has %d bytes, the limit is %d", len(s.Description), MaxDescription)
	}
	s.validateCommand(&f)
	f.word("subagent_type", s.SubagentType)
	f.word("sandbox", s.Sandbox)
	f.word("model", s.Model)
	f.word("persona", s.Persona)
	f.word("capability_mode", s.CapabilityMode)
	if _, ok := ParseIsolation(s.Isolation); !ok {
		f.add(CodeInvalidRequest, "isolation %q is neither none nor worktree", clip(s.Isolation))
	}
	f.path("cwd", s.Cwd)
	f.path("workspace", s.Workspace)
	if len(s.AddDirs) > MaxAddDirs {
		f.add(CodeTooLarge, "add_dirs has %d entries, the limit is %d", len(s.AddDirs), MaxAddDirs)
	}
	for i, d := range s.AddDirs {
		if d == "" {
			f.add(CodeInvalidRequest, "add_dirs[%d] is empty", i)
		}
		f.path(fmt.Sprintf("add_dirs[%d]", i), d)
	}
	if len(s.Deny) > MaxDeny {
		f.add(CodeTooLarge, "deny has %d entries, the limit is %d", len(s.Deny), MaxDeny)
	}
	for i, d := range s.Deny {
		if d == "" || len(d) > MaxPathBytes || strings.ContainsRune(d, 0) {
			f.add(CodeInvalidRequest, "deny[%d] is empty or not a path", i)
		}
	}
	s.validateMaySpawn(&f)
	f.millis("await_budget_ms", s.AwaitBudgetMS, MaxDurationMS)
	f.millis("max_runtime_ms", s.MaxRuntimeMS, MaxDurationMS)
	f.millis("idle_timeout_ms", s.IdleTimeoutMS, MaxDurationMS)
	if m := s.MaxMemoryBytes; m != nil && *m != 0 && (*m < MinMemoryBytes || *m > MaxMemoryBytes) {
		f.add(CodeInvalidRequest, "max_memory_bytes %d is neither 0 nor between %d and %d", *m, int64(MinMemoryBytes), int64(MaxMemoryBytes))
	}
	s.validateMaps(&f)
	if len(s.OutputSchema) > MaxOutputSchema {
		f.add(CodeTooLarge, "output_schema has %d bytes, the limit is %d", len(s.OutputSchema), MaxOutputSchema)
	}
	if !validSchema(s.OutputSchema) {
		f.add(CodeInvalidRequest, "output_schema is neither an object nor a boolean, or nested deeper than %d", MaxSchemaDepth)
	}
	return f.error(KindSpawn)
}

func (s Spawn) validateCommand(f *faults) {
	total := 0
	for i, a := range s.Command {
		total += len(a) + 1
		if strings.ContainsRune(a, 0) {
			f.add(CodeInvalidRequest, "command[%d] holds a NUL", i)
		}
	}
	if len(s.Command) > MaxArgv || total > MaxArgvBytes {
		f.add(CodeTooLarge, "command has %d arguments in %d bytes, the limits are %d and %d", len(s.Command), total, MaxArgv, MaxArgvBytes)
	}
	if len(s.Command) > 0 && s.Command[0] == "" {
		f.add(CodeMissingCommand, "command[0] is empty")
	}
}

func (s Spawn) validateMaySpawn(f *faults) {
	if len(s.MaySpawn) > MaxMaySpawn {
		f.add(CodeTooLarge, "may_spawn has %d entries, the limit is %d", len(s.MaySpawn), MaxMaySpawn)
	}
	for i, t := range s.MaySpawn {
		f.word(fmt.Sprintf("may_spawn[%d]", i), t)
		if t == "" || t[0] == '-' || strings.Contains(t, ",") {
			f.add(CodeInvalidRequest, "may_spawn[%d] %q is no type", i, clip(t))
		}
	}
}

func (s Spawn) validateMaps(f *faults) {
	if len(s.Env) > MaxEnv {
		f.add(CodeTooLarge, "env has %d entries, the limit is %d", len(s.Env), MaxEnv)
	}
	for _, k := range sortedKeys(s.Env) {
		switch {
		case !envPattern.MatchString(k):
			f.add(CodeInvalidRequest, "env: %q is not a variable's name", clip(k))
		case loaderVariable(k):
			f.add(CodeInvalidRequest, "env: %s loads code into other programs and is refused", k)
		case strings.ContainsRune(s.Env[k], 0):
			f.add(CodeInvalidRequest, "env: %s holds a NUL", k)
		}
	}
	if len(s.Labels) > MaxLabels {
		f.add(CodeTooLarge, "labels has %d entries, the limit is %d", len(s.Labels), MaxLabels)
	}
	f.labels("labels", s.Labels)
	if len(s.Inputs) > MaxInputs {
		f.add(CodeTooLarge, "inputs has %d entries, the limit is %d", len(s.Inputs), MaxInputs)
	}
	for _, k := range sortedKeys(s.Inputs) {
		if !envPattern.MatchString(k) || len(k) > 64 {
			f.add(CodeInvalidRequest, "inputs: %q is not 1 to 64 of A-Z a-z 0-9 _", clip(k))
		}
		if !ValidRef(s.Inputs[k]) {
			f.add(CodeInvalidID, "inputs: %s is not the id of a subagent", clip(k))
		}
	}
}

func (f *faults) labels(member string, labels map[string]string) {
	for _, k := range sortedKeys(labels) {
		if !labelPattern.MatchString(k) {
			f.add(CodeInvalidRequest, "%s: %q is not 1 to 63 of A-Z a-z 0-9 _ . / -", member, clip(k))
		}
		if len(labels[k]) > 256 || !utf8.ValidString(labels[k]) {
			f.add(CodeInvalidRequest, "%s: the value of %s is over 256 bytes or not UTF-8", member, clip(k))
		}
	}
}

// validSchema reports whether b may be a JSON Schema. Its depth is bounded
// because the records that hold it are nested deeper still and must be readable
// again.
func validSchema(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	dec := jsontext.NewDecoder(bytes.NewReader(b))
	switch dec.PeekKind() {
	case jsontext.KindBeginObject, jsontext.KindTrue, jsontext.KindFalse:
	default:
		return false
	}
	for {
		_, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil || dec.StackDepth() > MaxSchemaDepth {
			return false
		}
	}
}

// Validate implements [SubagentEvent].
func (q Query) Validate() *Error {
	var f faults
	f.scope("parent_session_id", q.ParentSessionID, false)
	if len(q.IDs) == 0 {
		f.add(CodeInvalidRequest, "ids is required: 1 to %d of them", MaxQueryIDs)
	}
	f.refs("ids", q.IDs, MaxQueryIDs)
	switch q.Mode {
	case "", QueryAll, QueryAny:
		if q.Count != 0 {
			f.add(CodeInvalidRequest, "count goes with mode count")
		}
	case QueryCount:
		if q.Count < 1 || q.Count > len(q.IDs) {
			f.add(CodeInvalidRequest, "count %d is not between 1 and the number of ids", q.Count)
		}
	default:
		f.add(CodeInvalidRequest, "mode %q is none of all, any, count", clip(string(q.Mode)))
	}
	f.millis("timeout_ms", q.TimeoutMS, MaxQueryMS)
	return f.error(KindQuery)
}

// Validate implements [SubagentEvent].
func (c Cancel) Validate() *Error {
	var f faults
	f.scope("parent_session_id", c.ParentSessionID, c.Target.ParentPromptID != "" || c.Target.Session)
	f.scope("target.parent_prompt_id", c.Target.ParentPromptID, false)
	f.refs("target.ids", c.Target.IDs, MaxQueryIDs)
	f.labels("target.label", c.Target.Label)
	n := 0
	for _, set := range []bool{len(c.Target.IDs) > 0, c.Target.ParentPromptID != "", c.Target.Session, len(c.Target.Label) > 0} {
		if set {
			n++
		}
	}
	if n != 1 {
		f.add(CodeInvalidRequest, "target: exactly one of ids, parent_prompt_id, session, label is needed, %d are set", n)
	}
	switch c.Reason {
	case "", ReasonUser, ReasonParent, ReasonPrompt, ReasonSession, ReasonShutdown, ReasonDependency, ReasonFailFast:
	default:
		f.add(CodeInvalidRequest, "reason %q is not one that a caller may give", clip(string(c.Reason)))
	}
	if len(c.Actor) > MaxActor || !utf8.ValidString(c.Actor) {
		f.add(CodeInvalidRequest, "actor is over %d bytes or not UTF-8", MaxActor)
	}
	f.millis("timeout_ms", c.TimeoutMS, MaxQueryMS)
	return f.error(KindCancel)
}

// Validate implements [SubagentEvent].
func (l ListActive) Validate() *Error {
	var f faults
	f.scope("parent_session_id", l.ParentSessionID, false)
	if l.After != "" && !ValidID(l.After) {
		f.add(CodeInvalidID, "after %q is not an id", clip(l.After))
	}
	if l.Max < 0 || l.Max > MaxPage {
		f.add(CodeInvalidRequest, "max %d is not between 0 and %d", l.Max, MaxPage)
	}
	f.millis("since_ms", l.SinceMS, MaxDurationMS)
	return f.error(KindListActive)
}

// Validate implements [SubagentEvent].
func (c Completions) Validate() *Error {
	var f faults
	f.scope("parent_session_id", c.ParentSessionID, true)
	for _, list := range []struct {
		member string
		ids    []string
	}{{"suppress_ids", c.SuppressIDs}, {"ack_ids", c.AckIDs}} {
		if len(list.ids) > MaxAckIDs {
			f.add(CodeTooLarge, "%s has %d entries, the limit is %d", list.member, len(list.ids), MaxAckIDs)
		}
		for _, id := range list.ids {
			if !ValidID(id) && !ValidDedupeID(id) {
				f.add(CodeInvalidID, "%s: %q is neither an id nor a dedupe id", list.member, clip(id))
			}
		}
	}
	f.millis("lease_ms", c.LeaseMS, MaxLeaseMS)
	if c.Max != nil && (*c.Max < 0 || *c.Max > MaxPage) {
		f.add(CodeInvalidRequest, "max %d is not between 0 and %d", *c.Max, MaxPage)
	}
	return f.error(KindCompletions)
}

// Validate implements [SubagentEvent].
func (o Outstanding) Validate() *Error {
	var f faults
	f.scope("parent_session_id", o.ParentSessionID, true)
	f.scope("parent_prompt_id", o.ParentPromptID, true)
	return f.error(KindOutstanding)
}

// loaderVariable tells variables that make unrelated programs load or run code.
func loaderVariable(k string) bool {
	if strings.HasPrefix(k, "LD_") || strings.HasPrefix(k, "DYLD_") || strings.HasPrefix(k, "BASH_FUNC_") {
		return true
	}
	switch k {
	case "GCONV_PATH", "BASH_ENV", "ENV", "PROMPT_COMMAND":
		return true
	}
	return false
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// clip shortens a caller's string for an error message.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}
