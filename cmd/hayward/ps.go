package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

// psFlags are the flags of ps.
type psFlags struct {
	session string
	all     bool
	quiet   bool
	watch   bool
	tree    bool
	bounds  bool
	since   time.Duration
}

func (a *app) psCommand() *cobra.Command {
	var f psFlags
	cmd := &cobra.Command{
		Use:     "ps",
		Aliases: []string{"ls", "list"},
		Short:   "List subagents",
		Long: `List the subagents that are queued, starting or running, oldest first.

With --tree they are below their session and prompt, and nested ones below the
subagent that asked for them. What the model calls of agents cost is in a column of
its own where there are any: a ? is a model that has no price. With --watch the list is shown anew at each change,
on a terminal in place; with --json it is then one object a line.`,
		Example: `  hayward ps
  hayward ps -a --since 1h
  hayward ps -w
  hayward ps --tree --since 10m
  hayward ps -a --boundaries
  hayward wait $(hayward ps -q --session build)
  hayward ps --json | jq '.subagents[].command_line'`,
		Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error { return a.ps(ctx, cmd, f) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "of this session only")
	flags.BoolVarP(&f.all, "all", "a", false, "the finished ones too")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "ids only")
	flags.BoolVarP(&f.watch, "watch", "w", false, "show it anew at each change")
	flags.BoolVar(&f.tree, "tree", false, "by session and prompt, and below the subagent that asked for them")
	flags.BoolVar(&f.bounds, "boundaries", false, "show context, identity, cwd, isolation and sandbox, each by itself")
	flags.DurationVar(&f.since, "since", 0, "and the finished ones that ended at most that long ago")
	return cmd
}

func (f psFlags) request() events.ListActive {
	return events.ListActive{
		ParentSessionID: f.session, IncludeFinished: f.all || f.since > 0, SinceMS: milliseconds(f.since),
	}
}

func (a *app) ps(ctx context.Context, cmd *cobra.Command, f psFlags) error {
	if f.since < 0 {
		return usage("--since must not be negative")
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	if f.watch {
		return c.done(a.watch(ctx, cmd, c, f))
	}
	list, err := c.ListAll(ctx, f.request())
	if err == nil {
		a.warn(cmd, list.Warnings)
		err = a.showList(list, f)
	}
	return c.done(err)
}

func (a *app) showList(list events.ListActiveReply, f psFlags) error {
	if a.json {
		return a.printJSON(list)
	}
	if f.quiet {
		var b strings.Builder
		for _, s := range list.Subagents {
			b.WriteString(s.SubagentID + "\n")
		}
		return a.write([]byte(b.String()))
	}
	width, _ := terminal(a.stdout)
	return a.write([]byte(listTable(list, f).render(width, a.colored())))
}

func listTable(list events.ListActiveReply, f psFlags) *table {
	if f.tree {
		return treeTable(list.Subagents)
	}
	if f.bounds {
		return boundariesTable(list.Subagents)
	}
	t := &table{header: snapshotHeader}
	for _, s := range list.Subagents {
		t.addSnapshot(s, "")
	}
	t.addCosts(list.Subagents)
	return t
}

// boundariesTable shows what bounds each subagent.
func boundariesTable(list []events.Snapshot) *table {
	t := &table{header: []string{"ID", "NAME", "STATUS", "CONTEXT", "SOURCE", "TYPE", "PERSONA", "MODEL", "PINNED", "CWD", "FROM", "ISOLATION", "REQUESTED", "APPLIED"}}
	for _, s := range list {
		b := s.Boundaries
		if b == nil { // of a coordinator of an earlier version
			b = &events.Boundaries{
				ContextSource: s.ContextSource, Identity: events.Identity{Type: s.SubagentType},
				Cwd: events.EffectiveCwd{Path: s.Cwd}, Isolation: s.Isolation,
			}
		}
		t.add(shortID(s.SubagentID), s.Name, shownStatus(s), b.ContextSource, shortID(s.ResumedFrom), b.Identity.Type, b.Identity.Persona,
			b.Identity.Model, yesNo(b.Identity.Pinned), b.Cwd.Path, string(b.Cwd.From), b.Isolation, b.Sandbox.Requested, b.Sandbox.Applied)
	}
	return t
}
