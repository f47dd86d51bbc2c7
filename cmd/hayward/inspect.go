package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

func (a *app) inspectCommand() *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use:   "inspect ID",
		Short: "Show everything about a subagent",
		Long: `Show everything about a subagent: what was asked, what became of it, what its
sandbox really enforced, and where its files are. Values of its environment are
not shown.`,
		Example: `  hayward inspect docs
  hayward inspect --json 5f3a | jq .record.sandbox.layers`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeIDs(true),
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, ids []string) error {
			c, err := a.connect(ctx)
			if err != nil {
				return err
			}
			reply, err := c.Inspect(ctx, events.InspectRequest{ParentSessionID: session, ID: ids[0]})
			if err == nil {
				err = a.showInspect(reply)
			}
			return c.done(err)
		}),
	}
	cmd.Flags().StringVar(&session, "session", "", "look in this session only")
	return cmd
}

// details are named values, shown one a line.
type details struct{ b strings.Builder }

func (d *details) add(name, format string, args ...any) {
	if value := strings.TrimSpace(oneLine(fmt.Sprintf(format, args...))); value != "" {
		fmt.Fprintf(&d.b, "%-18s %s\n", name, value)
	}
}

func (a *app) showInspect(r events.InspectReply) error {
	if a.json {
		return a.printJSON(r)
	}
	s := r.Snapshot
	d := &details{}
	d.add("id", "%s", s.SubagentID)
	d.add("name", "%s", s.Name)
	d.add("description", "%s", s.Description)
	d.add("type", "%s", s.SubagentType)
	d.add("session", "%s", s.ParentSessionID)
	d.add("prompt", "%s", s.ParentPromptID)
	d.add("parent", "%s", s.ParentID)
	d.add("tree of", "%s", s.RootID)
	d.add("parent's prompt", "%s", s.SpawnerPromptID)
	if r.Spec != nil {
		d.add("may spawn", "%s", r.Spec.Spawns)
	}
	d.boundaries(s)
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		d.add("label", "%s=%s", k, s.Labels[k])
	}
	d.add("command", "%s", s.CommandLine)
	d.add("workspace", "%s", s.Workspace)
	d.worktree(s.Worktree, s.Changes)
	d.add("background", "%s", yesNo(s.Background))
	d.add("state", "%s", s.State)
	d.add("status", "%s", s.Status)
	d.add("reason", "%s", s.Reason)
	d.add("actor", "%s", s.Actor)
	if s.Error != nil {
		d.add("error", "%s: %s", s.Error.Code, s.Error.Error())
	}
	d.add("exit", "%s", shownExit(s))
	d.add("created", "%s", s.CreatedAt.Local().Format(time.RFC3339))
	if s.StartedAt != nil {
		d.add("started", "%s", s.StartedAt.Local().Format(time.RFC3339))
	}
	if s.EndedAt != nil {
		d.add("ended", "%s", s.EndedAt.Local().Format(time.RFC3339))
	}
	d.add("duration", "%s", shownDuration(s.DurationMS))
	d.add("read", "%s", yesNo(s.Read))
	if e := s.Exit; e != nil && e.MaxRSSKiB > 0 {
		d.add("usage", "%d ms user, %d ms system, %d KiB at most", e.UserMS, e.SystemMS, e.MaxRSSKiB)
	}
	d.add("output", "%d bytes", s.Output.Bytes)
	if p := s.Process; p != nil && s.State != events.StateCompleted {
		d.add("process", "%d", p.PID)
	}
	for _, path := range s.Quarantined {
		d.add("moved aside", "%s", path)
	}
	if s.SandboxHint != nil {
		d.add("hint", "%s", s.SandboxHint)
	}
	d.agent(s.Agent)
	d.tokens(s)
	d.sandbox(s.Sandbox)
	d.add("directory", "%s", r.Dir)
	return a.write([]byte(d.b.String()))
}

// boundaries shows what bounds it, each by itself.
func (d *details) boundaries(s events.Snapshot) {
	b := s.Boundaries
	if b == nil { // of a coordinator of an earlier version
		d.add("context", "%s %s", s.ContextSource, s.ResumedFrom)
		d.add("cwd", "%s", s.Cwd)
		d.add("isolation", "%s", s.Isolation)
		return
	}
	d.add("context source", "%s", b.ContextSource)
	if r := b.ResumeSource; r != nil {
		d.add("resumed from", "%s", r.Identity.SubagentID)
		d.add("  its cwd", "%s", r.Directories.ChildCwd)
		d.add("  its worktree", "%s", r.Directories.WorktreePath)
		d.add("  its session", "%s", r.Session.ChildSessionID)
		d.add("  its snapshot", "%s", r.Snapshot.SnapshotRef)
		window := ""
		if r.Session.Window > 0 {
			window = fmt.Sprintf(" of a window of %d", r.Session.Window)
		}
		d.add("  taken over", "%d items, about %d tokens%s", r.Session.Items, r.Session.EstimatedTokens, window)
	}
	d.add("persona", "%s", b.Identity.Persona)
	if b.Identity.Model != "" {
		pinned := ""
		if b.Identity.Pinned {
			pinned = "(pinned)"
		}
		d.add("model", "%s %s", b.Identity.Model, pinned)
	}
	d.add("cwd", "%s (from %s)", cmp.Or(b.Cwd.Path, s.Cwd), b.Cwd.From)
	d.add("isolation", "%s", b.Isolation)
	d.add("sandbox requested", "%s", b.Sandbox.Requested)
	d.add("sandbox applied", "%s", cmp.Or(b.Sandbox.Applied, "not yet"))
}

// worktree shows a working tree and what was changed in it.
func (d *details) worktree(w *events.Worktree, c *events.Changes) {
	if w == nil {
		return
	}
	path := w.Path
	switch {
	case !w.Kept && w.Problem != nil:
		path += " (gone)"
	case !w.Kept:
		path += " (gone: nothing changed)"
	}
	d.add("worktree", "%s", path)
	d.add("repository", "%s", w.Repository)
	d.add("base commit", "%s", w.BaseCommit)
	if c != nil {
		d.add("changes", "%d files, %d insertions, %d deletions", c.Files, c.Insertions, c.Deletions)
	}
	for _, why := range w.KeptFor {
		d.add("kept for", "%s", why)
	}
	if w.Problem != nil {
		d.add("not saved", "%s", w.Problem.Error())
	}
}

func (d *details) sandbox(s *events.SandboxReport) {
	if s == nil {
		return
	}
	active := "active"
	if !s.Active {
		active = "not active"
	}
	d.add("sandbox", "%s, %s", s.Profile, active)
	for _, name := range slices.Sorted(maps.Keys(s.Layers)) {
		d.add("  "+name, "%s %s", s.Layers[name].State, s.Layers[name].Detail)
	}
	d.add("  network", "%s", s.Network)
	d.add("  tree kill", "%s", s.TreeKill)
	for _, w := range s.Writable {
		d.add("  writable", "%s", w)
	}
	d.add("  landlock abi", "%d", s.LandlockABI)
	for _, c := range s.Closed {
		d.add("  kept read-only", "%s", c)
	}
	for _, x := range s.Denied {
		d.add("  denied", "%s", x)
	}
	for _, m := range s.Missing {
		d.add("  leads nowhere", "%s", m)
	}
	for _, g := range s.Gaps {
		d.add("  gap", "%s", g)
	}
}
