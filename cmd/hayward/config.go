package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/config"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and check the configuration",
		Long: `Show and check the configuration. A value comes from the first of these that has
it: a pin (requirements.toml), the verb's flag, the environment, the project's
.hayward/config.toml if it is trusted, the user's config.toml, the system's, the
default. Every key is described in docs/configuration.md.`,
		Example: "  hayward config show --origin\n  hayward config path\n  hayward config check",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configShowCommand(), a.configPathCommand(), a.configCheckCommand())
	return cmd
}

// readConfig reads the configuration of this directory. A faulty one is
// returned with the error.
func (a *app) readConfig() (*config.Config, *config.Error, error) {
	s, err := a.sources(workingDir())
	if err != nil {
		return nil, nil, err
	}
	c, err := config.Load(s)
	var bad *config.Error
	if err != nil && !errors.As(err, &bad) {
		return nil, nil, err
	}
	return c, bad, nil
}

func (a *app) configShowCommand() *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use:   "show [KEY...]",
		Short: "Print the values in force",
		Long: `Print the values in force in this directory, all or those of some keys, as they
would stand in the file. A key without a value is a comment.

With --origin each is followed by where it comes from and what it overrides.
Settings of a project that is not trusted are shown as comments.`,
		Example: `  hayward config show
  hayward config show --origin limits.per_session
  hayward config show --json | jq '.values[] | select(.origin.layer != "default")'`,
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			var offers []string
			for _, k := range config.Keys {
				if !slices.Contains(given, k.Name) {
					offers = append(offers, k.Name+"\t"+k.About)
				}
			}
			return offers, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.verb(func(_ context.Context, cmd *cobra.Command, names []string) error {
			c, bad, err := a.readConfig()
			if err != nil {
				return err
			}
			if bad != nil {
				return settingsError(bad)
			}
			values := c.Values()
			if len(names) > 0 {
				values = nil
				for _, name := range names {
					k := config.Find(name)
					if k == nil {
						return usage("there is no key %q", name).WithRemedy("hayward config show lists them")
					}
					values = append(values, c.Value(k))
				}
			}
			return a.showConfig(c, values, origin)
		}),
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "and where each comes from")
	return cmd
}

// shownValue is one value of config show --json.
type shownValue struct {
	Key   string       `json:"key"`
	Type  config.Kind  `json:"type"`
	Scope config.Scope `json:"scope"`
	config.Setting
	Overridden []config.Setting `json:"overridden,omitempty"`
}

// shownConfig is what config show --json prints.
type shownConfig struct {
	Values   []shownValue  `json:"values"`
	Files    []config.File `json:"files"`
	Warnings []string      `json:"warnings,omitempty"`
}

func (a *app) showConfig(c *config.Config, values []config.Value, origin bool) error {
	if a.json {
		shown := shownConfig{Files: c.Files(), Warnings: c.Warnings()}
		for _, v := range values {
			shown.Values = append(shown.Values, shownValue{v.Key.Name, v.Key.Kind, v.Key.Scope, v.Setting, v.Overridden})
		}
		return a.printJSON(shown)
	}
	var lines [][2]string // text and comment
	width := 0
	for _, v := range values {
		text := v.Key.Name + " = " + literal(v.Key, v.Text)
		if v.Text == "" {
			text = "# " + v.Key.Name + " has no value"
		}
		comment := ""
		if origin {
			comment = v.Origin.String()
			for _, o := range v.Overridden {
				comment += fmt.Sprintf("; over %s of %s", literal(v.Key, o.Text), o.Origin)
			}
		}
		width = max(width, len(text))
		lines = append(lines, [2]string{text, comment})
	}
	var b strings.Builder
	for _, l := range lines {
		if l[1] == "" {
			fmt.Fprintln(&b, l[0])
			continue
		}
		fmt.Fprintf(&b, "%-*s  # %s\n", width, l[0], oneLine(l[1]))
	}
	for _, f := range c.Files() {
		if f.State != config.FileUntrusted {
			continue
		}
		fmt.Fprintf(&b, "\n# Not used, because this project is not trusted: %s\n", oneLine(f.Path))
		for _, name := range slices.Sorted(maps.Keys(f.Ignored)) {
			fmt.Fprintf(&b, "# %s = %s\n", name, literal(config.Find(name), f.Ignored[name].Text))
		}
	}
	return a.write([]byte(b.String()))
}

// literal is a value as TOML has it.
func literal(k *config.Key, text string) string {
	switch k.Kind {
	case config.KindString, config.KindDuration, config.KindSize:
		return fmt.Sprintf("%q", text)
	case config.KindCounts:
		return "{ " + strings.ReplaceAll(strings.ReplaceAll(text, "=", " = "), ",", ", ") + " }"
	}
	return text
}

func (a *app) configPathCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print the files that are looked for",
		Long: `Print the files that are looked for, the strongest first, and what became of each:
used, absent, bad (see: hayward config check), or of a project that is not trusted.`,
		Example: "  hayward config path\n  ${EDITOR:-vi} \"$(hayward config path --json | jq -r '.files[] | select(.layer == \"user\").path')\"",
		Args:    cobra.NoArgs,
		RunE: a.verb(func(context.Context, *cobra.Command, []string) error {
			c, _, err := a.readConfig()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(struct {
					Files []config.File `json:"files"`
				}{c.Files()})
			}
			t := &table{header: []string{"LAYER", "STATE", "PATH"}}
			for _, f := range c.Files() {
				t.add(f.Layer.String(), string(f.State), f.Path)
			}
			return a.printTable(t)
		}),
	}
}

// checkedConfig is what config check --json prints.
type checkedConfig struct {
	OK     bool           `json:"ok"`
	Files  []config.File  `json:"files"`
	Faults []config.Fault `json:"faults"`
}

func (a *app) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Print everything that is wrong with the configuration",
		Long: `Print everything that is wrong with the configuration files and variables of this
directory, one a line: the file, the line, the key, what is wrong.

The exit code is 2 when something is.`,
		Example: "  hayward config check\n  hayward config check --json | jq -r '.faults[].file'",
		Args:    cobra.NoArgs,
		RunE: a.verb(func(_ context.Context, cmd *cobra.Command, _ []string) error {
			c, bad, err := a.readConfig()
			if err != nil {
				return err
			}
			checked := checkedConfig{Files: c.Files(), Faults: []config.Fault{}}
			if bad != nil {
				checked.Faults = bad.Faults
			}
			checked.Faults = append(checked.Faults, a.checkProfile(c.Value(config.SandboxProfile))...)
			checked.OK = len(checked.Faults) == 0
			if a.json {
				err = a.printJSON(checked)
			} else {
				for _, f := range checked.Faults {
					if err = a.printf("%s\n", oneLine(f.String())); err != nil {
						break
					}
				}
			}
			if err != nil {
				return err
			}
			a.warn(cmd, c.Warnings())
			if !checked.OK {
				return status(exitUsage)
			}
			used := 0
			for _, f := range c.Files() {
				if f.State == config.FileUsed {
					used++
				}
			}
			a.say("%s: nothing is wrong, in %d files", cmd.CommandPath(), used)
			return nil
		}),
	}
}
