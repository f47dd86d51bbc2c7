package mcp

import (
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// wanted turns arguments into a spawn.
func (k *call) wanted(a spawnArguments) (events.Spawn, *events.Error) {
	if a.ResumeFrom == "" {
		return k.spawnRequest(a)
	}
	return k.resumeRequest(a)
}

// resumeRequest goes on from a subagent. What is not named stays as that one had it,
// so that has to be within what may be named here: the session may have had others
// than this server's.
func (k *call) resumeRequest(a spawnArguments) (events.Spawn, *events.Error) {
	var defaults events.Spawn
	k.o.Prepare(&defaults)
	s := events.Spawn{
		ParentSessionID: k.o.Session, ID: events.NewID(), ResumeFrom: a.ResumeFrom, MaxContextPercent: defaults.MaxContextPercent,
		SubagentType: a.Type, Command: a.Command, Prompt: a.Prompt, ParentPromptID: a.ParentPromptID,
		Description: a.Description, Name: a.Name, RunInBackground: a.Background, Model: a.Model, Labels: a.Labels, Inputs: a.Inputs,
		Isolation: a.Isolation, Sandbox: a.Sandbox, MaxRuntimeMS: a.MaxRuntimeMS,
	}
	for name, value := range a.Env {
		if s.Env == nil {
			s.Env = make(map[string]string)
		}
		s.Env[name] = value
	}
	r, err := k.snapshots([]string{a.ResumeFrom})
	if events.HasCode(err, events.CodeUnknownID) || err == nil && len(r.Snapshots) == 0 {
		return s, events.ResumeNotFound(a.ResumeFrom, k.o.Session)
	}
	if err != nil {
		return s, events.AsError(err)
	}
	source := r.Snapshots[0]
	s.ResumeFrom = source.SubagentID
	profile := a.Sandbox
	if profile == "" && source.Boundaries != nil {
		profile = source.Boundaries.Sandbox.Requested
	}
	if !slices.ContainsFunc(k.o.Sandboxes, func(p string) bool { return sameProfile(p, profile) }) {
		return s, events.Errorf(events.CodeForbidden, events.LayerPermission, "spawn_subagent: %s has the sandbox profile %q, which may not be named here", source.SubagentID, profile).
			WithDetail("allowed", strings.Join(k.o.Sandboxes, ", ")).
			WithRemedy("name one of these as sandbox; the user allows others with hayward mcp --allow-sandbox")
	}
	_, refusal := k.cwd(source.Cwd)
	return s, refusal
}
