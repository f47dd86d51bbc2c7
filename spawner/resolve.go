package spawner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox"
	"github.com/hayward-dev/hayward/sandbox/policy"
	"github.com/hayward-dev/hayward/worktree"
)

// TypeCommand is the subagent type that runs a command as it is.
const TypeCommand = agents.TypeCommand

// Resolve fills in what a spawn leaves open and refuses what cannot start. It
// reads the file system, so it does not belong on the drain loop. What it checks
// may change before the start; the start then fails with the same codes.
// profiles is the path of the global sandbox.toml; agent is what [Agents] made of
// the type.
func Resolve(ctx context.Context, s events.Spawn, agent *events.AgentSpec, profiles string) (events.Spawn, *events.Error) {
	if s.SubagentType == "" {
		s.SubagentType = TypeCommand
	}
	if s.SubagentType != TypeCommand && agent == nil {
		return s, events.Errorf(events.CodeUnknownType, events.LayerGate, "spawn: there is no subagent type %q", s.SubagentType).
			WithDetail("known", TypeCommand)
	}
	if len(s.Command) == 0 {
		return s, events.Errorf(events.CodeMissingCommand, events.LayerGate, "spawn: type %s needs a command", s.SubagentType)
	}
	if err := refuseUnsupported(s, agent); err != nil {
		return s, err
	}
	if err := refuseUnboundable(s); err != nil {
		return s, err
	}
	s.Isolation, _ = events.ParseIsolation(s.Isolation) // validated before
	if s.Stdin == "" {
		s.Stdin = events.StdinPrompt
	}
	s, _, err := ResolvePlace(s, profiles)
	if err != nil {
		return s, err
	}
	if s.Isolation == events.IsolationWorktree {
		if err := worktree.Check(s.Cwd); err != nil {
			return s, err
		}
	}
	if err := ctx.Err(); err != nil {
		return s, events.Errorf(events.CodeTimeout, events.LayerWorkspace, "spawn: %w", err)
	}
	return s, findCommand(s)
}

// ResolvePlace is the part of Resolve that finds the directories and the sandbox
// profile; the result holds the profiles there are, as far as they matter.
func ResolvePlace(s events.Spawn, profiles string) (events.Spawn, sandbox.Profiles, *events.Error) {
	s, err := resolveDirectories(s)
	if err != nil {
		return s, sandbox.Profiles{}, err
	}
	set, err := loadProfiles(profiles, s)
	if err != nil {
		return s, set, err
	}
	profile, err := sandbox.FindProfile(set, s.Sandbox)
	if err != nil {
		return s, set, err
	}
	s.Sandbox = profile.Name()
	return s, set, checkDeny(s, profile)
}

// checkDeny refuses entries to deny that mean nothing.
func checkDeny(s events.Spawn, profile sandbox.Profile) *events.Error {
	for i, d := range s.Deny {
		if err := policy.CheckDeny(d); err != nil {
			return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: deny[%d] %w", i, err)
		}
	}
	if len(s.Deny) > 0 && !profile.Enforced() {
		return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: profile off cannot deny anything").
			WithRemedy("name a profile that is enforced, such as workspace")
	}
	return nil
}

// loadProfiles reads the profiles a spawn may name. One that names a built-in
// profile does not depend on files that may be broken.
func loadProfiles(global string, s events.Spawn) (sandbox.Profiles, *events.Error) {
	if _, err := sandbox.ParseProfile(s.Sandbox); err == nil {
		return sandbox.Profiles{}, nil
	}
	return sandbox.LoadProfiles(global, s.Workspace)
}

// refuseUnsupported names what the request asks for and this build does not have.
func refuseUnsupported(s events.Spawn, agent *events.AgentSpec) *events.Error {
	var asked []string
	plain := agent == nil || agent.Runner == events.RunnerCommand
	for member, set := range map[string]bool{
		"model": s.Model != "" && plain, "persona": s.Persona != "" && plain, "capability_mode": s.CapabilityMode != "" && plain,
		"output_schema": len(s.OutputSchema) > 0 && plain, "require_no_denials": s.RequireNoDenials && plain,
	} {
		if set {
			asked = append(asked, member)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	sort.Strings(asked)
	return events.Errorf(events.CodeUnsupported, events.LayerGate,
		"spawn: this version has no %s for type %s", strings.Join(asked, ", "), s.SubagentType)
}

// refuseUnboundable refuses a memory limit that this machine cannot set.
func refuseUnboundable(s events.Spawn) *events.Error {
	if s.MaxMemoryBytes == nil || *s.MaxMemoryBytes == 0 {
		return nil
	}
	if err := CanLimitMemory(); err != nil {
		return events.Errorf(events.CodeUnsupported, events.LayerGate, "spawn: max_memory_bytes %d: %w", *s.MaxMemoryBytes, err).
			WithRemedy("the coordinator needs a control group with the memory controller in which it may make groups; see hayward doctor")
	}
	return nil
}

func resolveDirectories(s events.Spawn) (events.Spawn, *events.Error) {
	if s.Cwd == "" {
		s.Cwd = s.Workspace
	}
	if s.Cwd == "" {
		return s, events.Errorf(events.CodeCwdMissing, events.LayerGate, "spawn: neither cwd nor workspace is given").
			WithRemedy("name the absolute directory that the command runs in")
	}
	var err *events.Error
	if s.Cwd, err = directory("cwd", s.Cwd); err != nil {
		return s, err
	}
	if s.Workspace == "" {
		s.Workspace = repositoryTop(s.Cwd)
	}
	if s.Workspace, err = directory("workspace", s.Workspace); err != nil {
		return s, err
	}
	for i, dir := range s.AddDirs {
		if s.AddDirs[i], err = directory("add_dirs", dir); err != nil {
			return s, err
		}
	}
	return s, nil
}

// directory returns the canonical path of a directory. What is accepted is what
// the path leads to now; the start refuses a path that leads elsewhere by then.
func directory(member, path string) (string, *events.Error) {
	canonical, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", events.Errorf(events.CodeCwdMissing, events.LayerWorkspace, "spawn: %s: %w", member, err)
	}
	st, err := os.Stat(canonical)
	switch {
	case err != nil:
		return "", events.Errorf(events.CodeCwdMissing, events.LayerWorkspace, "spawn: %s: %w", member, err)
	case !st.IsDir():
		return "", events.Errorf(events.CodeCwdMissing, events.LayerWorkspace, "spawn: %s: %s is not a directory", member, path)
	}
	return canonical, nil
}

// repositoryTop is the directory above dir that holds .git, else dir. Git is not
// run: its answer would depend on files that a hostile project controls.
func repositoryTop(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// findCommand looks the program up as the child will: in the request's PATH, a
// name with a slash relative to the working directory.
func findCommand(s events.Spawn) *events.Error {
	name := s.Command[0]
	missing := func(err error) *events.Error {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EISDIR) {
			return events.Errorf(events.CodeCommandNotExec, events.LayerGate, "spawn: %s: %w", name, err)
		}
		return events.Errorf(events.CodeCommandNotFound, events.LayerGate, "spawn: %s: %w", name, err)
	}
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.Cwd, name)
		}
		if _, err := exec.LookPath(name); err != nil {
			return missing(errors.Unwrap(err))
		}
		return nil
	}
	path, ok := s.Env["PATH"]
	if !ok {
		path = baseEnvironment["PATH"]
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // a relative entry would let the workspace choose the program
		}
		if _, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return nil
		}
	}
	return missing(errors.New("not found in PATH"))
}
