package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// CapabilityMode bounds the kinds of tools: whether files may be changed and
// whether commands may run. Empty: not said.
type CapabilityMode string

// The capability modes.
const (
	CapabilityReadOnly  CapabilityMode = "read-only"
	CapabilityReadWrite CapabilityMode = "read-write"
	CapabilityExecute   CapabilityMode = "execute"
	CapabilityAll       CapabilityMode = "all"
)

// ParseCapabilityMode reads a mode in any of its spellings: read-only, readOnly,
// ReadOnly, read_only, All.
func ParseCapabilityMode(s string) (CapabilityMode, error) {
	switch fold(s) {
	case "readonly":
		return CapabilityReadOnly, nil
	case "readwrite":
		return CapabilityReadWrite, nil
	case "execute":
		return CapabilityExecute, nil
	case "all":
		return CapabilityAll, nil
	}
	return "", fmt.Errorf("%q is none of read-only, read-write, execute, all", s)
}

// Intersect is what both allow. What is not said allows all; to change files only
// and to run commands only have nothing in common but reading.
func (m CapabilityMode) Intersect(n CapabilityMode) CapabilityMode {
	switch {
	case m == n, n == "", n == CapabilityAll && m != "":
		return m
	case m == "", m == CapabilityAll:
		return n
	}
	return CapabilityReadOnly
}

// PermissionMode is how an agent's own permission prompts are answered.
type PermissionMode string

var permissionModes = []PermissionMode{"default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"}

// ParsePermissionMode reads a permission mode.
func ParsePermissionMode(s string) (PermissionMode, error) {
	for _, m := range permissionModes {
		if fold(string(m)) == fold(s) {
			return m, nil
		}
	}
	return "", fmt.Errorf("%q is none of default, acceptEdits, plan, bypassPermissions, dontAsk, auto", s)
}

// widens reports whether the mode skips a question that the default asks.
func (m PermissionMode) widens() bool { return m != "" && m != "default" && m != "plan" }

// ParseIsolation reads a file space in any of its spellings.
func ParseIsolation(s string) (string, error) {
	switch s {
	case "none", "None":
		return events.IsolationNone, nil
	case "worktree", "Worktree", "work_tree", "work-tree":
		return events.IsolationWorktree, nil
	}
	return "", fmt.Errorf("%q is neither none nor worktree", s)
}

var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// parseEffort reads an effort: a word, or a number of tokens.
func parseEffort(s string) (string, error) {
	if slices.Contains(efforts, strings.ToLower(s)) {
		return strings.ToLower(s), nil
	}
	if s != "" && strings.Trim(s, "0123456789") == "" && s[0] != '0' && len(s) <= 7 {
		return s, nil
	}
	return "", fmt.Errorf("%q is neither one of %s nor a number of tokens", s, strings.Join(efforts, ", "))
}

// fold makes the spellings of a key or a mode equal.
func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
}
