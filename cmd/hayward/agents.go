package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/internal/trust"
)

const agentsHelp = `List the agent types that a spawn from this directory can name, and what is wrong
with the files that define them.

A type is a file with a header and a prompt below it:
  ---
  name: reviewer
  description: Reads a change and says what is wrong with it.
  tools: Read, Grep, Bash
  sandbox: read-only
  ---
  You review changes. ...

Files are looked for in .hayward/agents, .claude/agents, .grok/agents and
.codex/agents, from this directory up to the top of the project, then in the
user's own directories. A project counts in full once it is trusted (hayward
trust); before, it can only add types, without what widens rights.`

func (a *app) agentsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "agents",
		Short:   "List, show and check the agent types",
		Long:    agentsHelp,
		Example: "  hayward agents\n  hayward agents show explore --origin\n  hayward agents check\n  hayward agents --json | jq -r '.agents[].name'",
		Args:    cobra.NoArgs,
		RunE:    a.verb(func(context.Context, *cobra.Command, []string) error { return a.listAgents() }),
	}
	cmd.AddCommand(a.agentsShowCommand(), a.agentsCheckCommand())
	return cmd
}

// agentPlaces says where definitions are, for this directory.
func (a *app) agentPlaces() (agents.Places, error) {
	p, err := a.paths()
	if err != nil {
		return agents.Places{}, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return agents.Places{}, usage("the working directory: %w", err)
	}
	return agents.PlacesOf(dir, p.Config, a.getenv("HOME"), trust.Open(p.Trusted()))
}

// listedAgents is what agents --json prints.
type listedAgents struct {
	Agents   []agents.Definition `json:"agents"`
	Shadowed []agents.Definition `json:"shadowed"`
	Faults   []agents.Fault      `json:"faults"`
}

func (a *app) listAgents() error {
	places, err := a.agentPlaces()
	if err != nil {
		return err
	}
	set := agents.Load(places)
	if a.json {
		return a.printJSON(listedAgents{set.Definitions, nonNil(set.Shadowed), nonNil(set.Faults)})
	}
	t := &table{header: []string{"NAME", "SOURCE", "SANDBOX", "MODEL", "DESCRIPTION"}}
	for _, d := range set.Definitions {
		from := string(d.Source.Scope)
		if d.Source.Untrusted {
			from += " (not trusted)"
		}
		profile := d.Sandbox
		if profile == "" && d.CapabilityMode == agents.CapabilityReadOnly {
			profile = "read-only" // what the spawner gives it
		}
		t.add(d.Name, from, profile, d.Model, d.Description)
	}
	if err := a.printTable(t); err != nil {
		return err
	}
	a.sayFaults(set.Faults)
	return nil
}

// nonNil makes an absent list an empty one.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// sayFaults tells how much there is to be said about the files.
func (a *app) sayFaults(faults []agents.Fault) {
	counts := map[agents.Severity]int{}
	for _, f := range faults {
		counts[f.Severity]++
	}
	if counts[agents.SeverityError]+counts[agents.SeverityWarning] > 0 {
		a.say("hayward agents: %d errors and %d warnings in the files; see: hayward agents check", counts[agents.SeverityError], counts[agents.SeverityWarning])
	}
}

func (a *app) agentsShowCommand() *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show an agent type",
		Long: `Show an agent type as a spawn from this directory gets it: its settings and its
prompt. With --origin each setting is followed by the file and line it is from.`,
		Example: "  hayward agents show explore\n  hayward agents show reviewer --origin\n  hayward agents show reviewer --json | jq -r .prompt",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.agentNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.verb(func(_ context.Context, _ *cobra.Command, args []string) error {
			places, err := a.agentPlaces()
			if err != nil {
				return err
			}
			d, refusal := agents.Load(places).Find(args[0])
			if refusal != nil {
				return refusal
			}
			if a.json {
				return a.printJSON(d)
			}
			return a.write([]byte(shownAgent(d, origin)))
		}),
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "and where each setting is from")
	return cmd
}

// agentNames are the types for completion, with their descriptions.
func (a *app) agentNames() []string {
	places, err := a.agentPlaces()
	if err != nil {
		return nil
	}
	var offers []string
	for _, d := range agents.Load(places).Definitions {
		offers = append(offers, d.Name+"\t"+oneLine(d.Description))
	}
	return offers
}

// shownAgent is a definition for people.
func shownAgent(d *agents.Definition, origin bool) string {
	out := &details{}
	add := func(key, value string) {
		if value == "" {
			return
		}
		if line := d.Lines[key]; origin && line > 0 && d.Source.Path != "" {
			value += fmt.Sprintf("  (%s:%d)", d.Source.Path, line)
		}
		out.add(strings.ReplaceAll(key, "_", " "), "%s", value)
	}
	add("name", d.Name)
	out.add("source", "%s", d.Source)
	if d.Source.Untrusted {
		out.add("trusted", "no: what widens rights is left out (hayward trust)")
	}
	add("description", d.Description)
	add("runner", d.Runner)
	add("command", strings.Join(d.Command, " "))
	switch {
	case d.Tools == nil:
		out.add("tools", "all that the spawner has")
	case len(d.Tools) == 0:
		add("tools", "none")
	default:
		add("tools", strings.Join(d.Tools, ", "))
	}
	add("disallowed_tools", strings.Join(d.DisallowedTools, ", "))
	add("capability_mode", string(d.CapabilityMode))
	add("permission_mode", string(d.PermissionMode))
	add("model", d.Model)
	add("effort", d.Effort)
	add("max_turns", positive(int64(d.MaxTurns)))
	add("isolation", d.Isolation)
	add("sandbox", d.Sandbox)
	add("background", yes(d.Background))
	add("disabled", yes(d.Disabled))
	add("mcp_inheritance", strings.TrimSpace(d.MCP.Mode+" "+strings.Join(d.MCP.Names, ", ")))
	for _, s := range d.MCPServers {
		add("mcp_servers", s.Name)
	}
	add("skills", strings.Join(d.Skills, ", "))
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		add("env", name) // a value may be a secret
	}
	if d.Hooks != nil {
		add("hooks", "yes")
	}
	add("output_schema", string(d.OutputSchema))
	add("require_no_denials", yes(d.RequireNoDenials))
	if n := d.Limits.MaxRuntime; n > 0 {
		add("max_runtime", n.String())
	}
	if n := d.Limits.IdleTimeout; n > 0 {
		add("idle_timeout", n.String())
	}
	add("max_memory", positive(d.Limits.MaxMemory))
	for _, name := range slices.Sorted(maps.Keys(d.Extra)) {
		out.add("not used", "%s", name)
	}
	if d.Prompt != "" {
		out.b.WriteString("\n" + printableLines(d.Prompt) + "\n")
	}
	return out.b.String()
}

func positive(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// printableLines is a text of several lines without what would move the cursor.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = printable(l)
	}
	return strings.Join(lines, "\n")
}

func (a *app) agentsCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Print everything that is wrong with the agent files",
		Long: `Print everything that is to be said about the agent files of this directory, one a
line: the severity, the file, the line, the key, what is wrong. A file with an
error takes its type away; a note is about a file that defines none.

The exit code is 2 when there is an error.`,
		Example: "  hayward agents check\n  hayward agents check --json | jq -r '.faults[] | select(.severity == \"error\").file'",
		Args:    cobra.NoArgs,
		RunE: a.verb(func(_ context.Context, cmd *cobra.Command, _ []string) error {
			places, err := a.agentPlaces()
			if err != nil {
				return err
			}
			set := agents.Load(places)
			failed := slices.ContainsFunc(set.Faults, func(f agents.Fault) bool { return f.Severity == agents.SeverityError })
			if a.json {
				err = a.printJSON(struct {
					OK     bool           `json:"ok"`
					Faults []agents.Fault `json:"faults"`
				}{!failed, nonNil(set.Faults)})
			} else {
				for _, f := range set.Faults {
					if err = a.printf("%s: %s\n", f.Severity, oneLine(f.String())); err != nil {
						break
					}
				}
			}
			if err != nil {
				return err
			}
			if failed {
				return status(exitUsage)
			}
			a.say("%s: no errors, in %d types", cmd.CommandPath(), len(set.Definitions))
			return nil
		}),
	}
}
