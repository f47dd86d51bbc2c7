package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/internal/trust"
)

func (a *app) trustCommand() *cobra.Command {
	var list, revoke bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let a project's own settings and agents count",
		Long: `Let a project's own files count: .hayward/config.toml, and what its agent files say
about hooks, MCP servers, commands, variables and wider rights. Without that a
project can only add agent types and sandbox profiles. The project is the git
repository around DIR (default: this directory), else DIR itself; a repository
inside it is another project.

Trust is for these files as they are now, at the top of the project. Once one of
them is added, changed or removed, by a subagent or by a commit that you pull, the
project is not trusted until you say so again. What they say runs with your rights,
so look at them first: hayward agents check, hayward config show.`,
		Example: "  hayward trust\n  hayward trust ~/src/project\n  hayward trust --list\n  hayward trust --revoke ~/src/project",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.verb(func(_ context.Context, cmd *cobra.Command, args []string) error {
			p, err := a.paths()
			if err != nil {
				return err
			}
			projects := trust.Open(p.Trusted())
			if list {
				if len(args) > 0 || revoke {
					return usage("--list goes alone")
				}
				return a.listTrusted(projects)
			}
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return a.changeTrust(projects, dir, revoke)
		}),
	}
	cmd.Flags().BoolVar(&list, "list", false, "print the trusted projects")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "take trust back")
	return cmd
}

func (a *app) listTrusted(projects trust.List) error {
	all, err := projects.Projects()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Projects []trust.Project `json:"projects"`
		}{nonNil(all)})
	}
	t := &table{header: []string{"SINCE", "STATE", "PROJECT"}}
	for _, p := range all {
		state := "trusted"
		if ok, err := projects.Trusts(p.Dir); err != nil {
			state = "unreadable"
		} else if !ok {
			state = "changed since"
		}
		t.add(p.Since.Local().Format(time.DateTime), state, p.Dir)
	}
	return a.printTable(t)
}

// changedTrust is what trust --json prints.
type changedTrust struct {
	Dir     string `json:"dir"`
	Trusted bool   `json:"trusted"`
	Changed bool   `json:"changed"`
}

func (a *app) changeTrust(projects trust.List, dir string, revoke bool) error {
	if revoke {
		top, removed, err := projects.Remove(dir)
		if err != nil {
			return usage("%w", err)
		}
		return a.sayTrust(changedTrust{Dir: top, Changed: removed})
	}
	if st, err := os.Stat(dir); err != nil {
		return usage("%w", err)
	} else if !st.IsDir() {
		return usage("%s is not a directory", dir)
	}
	top, added, err := projects.Add(dir, a.getenv("HOME"), time.Now())
	if err != nil {
		return usage("%w", err)
	}
	return a.sayTrust(changedTrust{Dir: top, Trusted: true, Changed: added})
}

func (a *app) sayTrust(c changedTrust) error {
	if a.json {
		return a.printJSON(c)
	}
	state := map[bool]string{true: "trusted", false: "not trusted"}[c.Trusted]
	if !c.Changed {
		state += ", as before"
	}
	return a.printf("%s: %s\n", oneLine(c.Dir), state)
}
