package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/resume"
)

const resumeHelp = `Go on from a finished subagent: completed, failed, cancelled or crashed.

A new subagent takes up its conversation, with its type, persona and model, in its
working directory or working tree, and is told the prompt next. An agent then knows
what was said and done before; a command is run again as it was, with the prompt on
stdin, or without one with that of before. The source is not changed and can be
resumed again. Where it cannot be gone on from as it was, the refusal says why and
nothing is started.

Without --detach it is in the foreground, as with spawn, but for stdin: what it reads
there is the prompt. What no flag changes is as the source had it: sandbox, isolation,
environment, labels, limits.

With --all --run RUN every subagent of a run that ended without completing, and was
not resumed since, is resumed in the background. What of the plan never began is for
run --continue.`

const resumeExamples = `  hayward resume docs --prompt "Now the examples, too."
  hayward resume 5f3a --detach --prompt @next.md
  hayward resume refactor --isolation none --prompt "Look at it in the repository itself."
  hayward resume --all --run 01a22e70-0e17-7a6b-841a-5c892090c5a8
  hayward resume --json docs --prompt "Shorter." | jq .boundaries`

// resumeFlags are the flags of resume.
type resumeFlags struct {
	session     string
	parent      string
	name        string
	model       string
	persona     string
	capability  string
	prompt      string
	description string
	detach      bool
	env         []string
	labels      []string
	id          string
	all         bool
	run         string
}

func (a *app) resumeCommand() *cobra.Command {
	var f resumeFlags
	cmd := &cobra.Command{
		Use:               "resume ID [flags]",
		Short:             "Go on from a finished subagent, with its memory and its files",
		Long:              resumeHelp,
		Example:           resumeExamples,
		ValidArgsFunction: a.completeIDs(true),
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, ids []string) error {
			return a.resume(ctx, cmd, f, ids)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "look in this session only")
	flags.StringVar(&f.prompt, "prompt", "", "what it is told next: `TEXT`, @FILE, or - for stdin")
	flags.BoolVarP(&f.detach, "detach", "d", false, "run in the background and print the id")
	flags.BoolVar(&f.detach, "background", false, "the same as --detach")
	flags.StringVar(&f.name, "name", "", "name (default: that of the source, if it is free)")
	flags.StringVar(&f.parent, "parent-prompt", "", "prompt of the session that it belongs to")
	flags.StringVar(&f.description, "description", "", "what it is for, in a few words")
	flags.StringVar(&f.model, "model", "", "ignored with a warning: the model is that of the source")
	flags.StringVar(&f.persona, "persona", "", "refused unless it is that of the source")
	flags.StringVar(&f.capability, "capability-mode", "", "what an agent may do: read-only, read-write, execute or all")
	flags.String("sandbox", "", "another sandbox profile than the source had")
	flags.Bool("sandbox-best-effort", false, "go on with what the kernel can enforce")
	flags.String("isolation", "", "another file space than the source had: none or worktree")
	flags.StringArrayVar(&f.env, "env", nil, "`K=V` to set, or K to take from here (repeatable)")
	flags.StringArrayVar(&f.labels, "label", nil, "`K=V` to select it by, in place of those of the source (repeatable)")
	flags.Duration("max-runtime", 0, "end it after that long")
	flags.Var(byteSize{new(int64)}, "max-memory", "end it when its processes use more memory than that, such as 512M (0: no bound)")
	flags.Duration("idle-timeout", 0, "end it after that long without output")
	flags.StringVar(&f.id, "id", "", "its id, a UUID (default: a new one)")
	flags.BoolVar(&f.all, "all", false, "resume what of --run did not complete")
	flags.StringVar(&f.run, "run", "", "the `RUN` that --all is about, see hayward report")
	return cmd
}

func (a *app) resume(ctx context.Context, cmd *cobra.Command, f resumeFlags, ids []string) error {
	switch {
	case f.all != (f.run != ""):
		return usage("--all and --run go together")
	case f.all && len(ids) > 0:
		return usage("--all takes no ID")
	case f.all && (f.id != "" || f.name != ""):
		return usage("--all gives each an id and a name of its own")
	case !f.all && len(ids) != 1:
		return usage("resume takes one ID").WithRemedy("hayward ps -a lists what has ended")
	case !f.all && !events.ValidRef(ids[0]):
		return events.Errorf(events.CodeInvalidID, events.LayerGate, "%q is neither an id nor a name", ids[0])
	}
	if err := a.takeFlags(cmd, config.ScopeClient); err != nil {
		return err
	}
	a.warn(cmd, a.settings.Warnings())
	request, err := a.resumeRequest(f)
	if err != nil {
		return err
	}
	if f.all {
		return a.resumeAll(ctx, cmd, request, f.run)
	}
	if request.ParentSessionID, request.ResumeFrom, err = a.findSource(ctx, f.session, ids[0]); err != nil {
		return err
	}
	if err := request.Validate(); err != nil {
		return err
	}
	if f.detach {
		ctx, stop := interruptible(ctx)
		defer stop()
		return a.spawnDetached(ctx, cmd, request)
	}
	return a.spawnForeground(ctx, cmd, spawnFlags{}, request)
}

// findSource finds out which session a subagent belongs to: its resume does too.
func (a *app) findSource(ctx context.Context, session, ref string) (owner, id string, err error) {
	c, err := a.connect(ctx)
	if err != nil {
		return "", "", err
	}
	reply, err := c.Query(ctx, events.Query{ParentSessionID: session, IDs: []string{ref}})
	if err = c.done(err); err != nil {
		return "", "", err
	}
	if len(reply.Value.Snapshots) != 1 {
		return "", "", events.Errorf(events.CodeUnknownID, events.LayerGate, "there is no subagent %s", ref)
	}
	s := reply.Value.Snapshots[0]
	return s.ParentSessionID, s.SubagentID, nil
}

// resumeRequest is what the flags say; the source is still to be put in.
func (a *app) resumeRequest(f resumeFlags) (events.Spawn, error) {
	s := events.Spawn{
		ID: f.id, Name: f.name, Description: f.description, ParentPromptID: f.parent,
		Model: f.model, Persona: f.persona, CapabilityMode: f.capability,
	}
	c := a.settings
	given := func(k *config.Key) bool {
		at := c.Value(k).Origin.Layer
		return at == config.LayerFlag || at == config.LayerPin
	}
	if given(config.SandboxProfile) {
		s.Sandbox = c.String(config.SandboxProfile)
	}
	if given(config.SandboxBestEffort) {
		s.SandboxBestEffort = c.Bool(config.SandboxBestEffort)
	}
	if given(config.SpawnIsolation) {
		s.Isolation = c.String(config.SpawnIsolation)
	}
	if given(config.SpawnMaxRuntime) {
		s.MaxRuntimeMS = milliseconds(c.Duration(config.SpawnMaxRuntime))
	}
	if given(config.SpawnIdleTimeout) {
		s.IdleTimeoutMS = milliseconds(c.Duration(config.SpawnIdleTimeout))
	}
	if given(config.SpawnMaxMemory) {
		n := c.Bytes(config.SpawnMaxMemory)
		s.MaxMemoryBytes = &n
	}
	a.applyResume(&s)
	var err error
	if s.Env, err = a.explicitEnv(f.env); err != nil {
		return s, err
	}
	if s.Labels, err = pairs("--label", f.labels); err != nil {
		return s, err
	}
	s.Prompt, s.PromptFile, err = a.promptOf(f.prompt)
	return s, err
}

// applyResume gives a spawn the configured bound of a conversation, which the daemon
// only lets lower its own.
func (a *app) applyResume(s *events.Spawn) {
	if a.settings.Value(config.ResumeMaxContext).IsSet() {
		s.MaxContextPercent = a.settings.Int(config.ResumeMaxContext)
	}
}

// resumePolicy is what the daemon bounds resumes by.
func resumePolicy(c *config.Config) resume.Policy {
	more := make(resume.Models)
	for name, tokens := range c.Counts(config.ResumeWindows) {
		more[name] = int64(tokens)
	}
	return resume.Policy{Models: resume.DefaultModels().With(more), MaxContextPercent: c.Int(config.ResumeMaxContext)}
}

// resumedAll is what became of resume --all.
type resumedAll struct {
	Resumed []resumedOne `json:"resumed"`
	Refused []resumedOne `json:"refused"`
}

type resumedOne struct {
	ResumeFrom string        `json:"resume_from"`
	Name       string        `json:"name,omitempty"`
	SubagentID string        `json:"subagent_id,omitempty"`
	Error      *events.Error `json:"error,omitempty"`
	Warnings   []string      `json:"warnings,omitempty"`
}

// unfinished are the ends that are worth going on from: of no subagent's own, not
// completed, and not gone
// on from since.
func unfinished(list []events.Snapshot) (found []events.Snapshot) {
	resumed := make(map[string]bool)
	for _, s := range list {
		resumed[s.ResumedFrom] = true
	}
	for _, s := range list {
		if s.ParentID == "" && s.Status.Terminal() && s.Status != events.StatusCompleted && !resumed[s.SubagentID] {
			found = append(found, s)
		}
	}
	return found
}

func (a *app) resumeAll(ctx context.Context, cmd *cobra.Command, request events.Spawn, run string) error {
	if !events.ValidScope(run) {
		return usage("%q is not a run", run)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	list, err := c.ListAll(ctx, events.ListActive{ParentSessionID: run, IncludeFinished: true})
	if err == nil && len(list.Subagents) == 0 {
		err = events.Errorf(events.CodeUnknownID, events.LayerGate, "there is no run %s", run).WithRemedy("hayward ps -a --tree lists sessions")
	}
	if err != nil {
		return c.done(err)
	}
	all := resumedAll{Resumed: []resumedOne{}, Refused: []resumedOne{}}
	for _, s := range unfinished(list.Subagents) {
		one := resumedOne{ResumeFrom: s.SubagentID, Name: s.Name}
		request.ParentSessionID, request.ResumeFrom, request.RunInBackground = run, s.SubagentID, true
		reply, err := c.Spawn(ctx, request)
		var refused *events.Error
		switch {
		case err == nil:
			one.SubagentID, one.Warnings = reply.Value.SubagentID, reply.Value.Warnings
			all.Resumed = append(all.Resumed, one)
		case ctx.Err() == nil && errors.As(err, &refused) && refused.Code != events.CodeUnreachable:
			one.Error = refused
			all.Refused = append(all.Refused, one)
		default:
			return c.done(err)
		}
	}
	return c.done(a.showResumed(cmd, all))
}

func (a *app) showResumed(cmd *cobra.Command, all resumedAll) error {
	if a.json {
		if err := a.printJSON(all); err != nil {
			return err
		}
	} else if len(all.Resumed) > 0 {
		t := &table{header: []string{"SOURCE", "NAME", "ID"}}
		for _, one := range all.Resumed {
			t.add(shortID(one.ResumeFrom), one.Name, one.SubagentID)
			a.warn(cmd, one.Warnings)
		}
		if err := a.printTable(t); err != nil {
			return err
		}
	}
	for _, one := range all.Refused {
		a.say("%s: %s: %s", cmd.CommandPath(), shortID(one.ResumeFrom), oneLine(one.Error.Error()))
	}
	if len(all.Resumed)+len(all.Refused) == 0 {
		a.say("%s: everything of that run completed, runs, or was resumed", cmd.CommandPath())
	}
	if len(all.Refused) > 0 {
		return status(exitOwn)
	}
	return nil
}
