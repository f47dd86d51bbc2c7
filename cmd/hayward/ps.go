package main

import (
	"context"
	"slices"
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
	since   time.Duration
}

func (a *app) psCommand() *cobra.Command {
	var f psFlags
	cmd := &cobra.Command{
		Use:     "ps",
		Aliases: []string{"ls", "list"},
		Short:   "List subagents",
		Long: `List the subagents that are queued, starting or running, oldest first.

With --watch the list is shown anew at each change, on a terminal in place; with
--json it is then one object a line.`,
		Example: `  hayward ps
  hayward ps -a --since 1h
  hayward ps -w
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
	flags.BoolVar(&f.tree, "tree", false, "below the subagent that asked for them")
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
	t := &table{header: snapshotHeader}
	if !f.tree {
		for _, s := range list.Subagents {
			t.addSnapshot(s, "")
		}
		return t
	}
	addTree(t, list.Subagents)
	return t
}

// addTree adds each subagent below the one that asked for it. One whose parent
// is not listed is a root.
func addTree(t *table, all []events.Snapshot) {
	children := make(map[string][]events.Snapshot)
	for _, s := range all {
		parent := s.ParentID
		if !slices.ContainsFunc(all, func(p events.Snapshot) bool { return p.SubagentID == parent }) {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	var add func(parent string, depth int)
	add = func(parent string, depth int) {
		for _, s := range children[parent] {
			prefix := ""
			if depth > 0 {
				prefix = strings.Repeat("  ", depth-1) + "└ "
			}
			t.addSnapshot(s, prefix)
			add(s.SubagentID, depth+1)
		}
	}
	add("", 0)
}
