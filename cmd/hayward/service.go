package main

import (
	"context"

	"github.com/spf13/cobra"
)

// serviceFlags are those of service install, uninstall and status.
type serviceFlags struct {
	user, system, dryRun, force bool
}

// serviceState says what is there, or what was or would be done.
type serviceState struct {
	Unit string `json:"unit"`
	// State is absent, installed (as this program would write it), outdated (as
	// another version wrote it) or changed (by somebody else).
	State  string   `json:"state"`
	Done   string   `json:"done,omitempty"`
	DryRun bool     `json:"dry_run,omitzero"`
	Next   []string `json:"next,omitempty"`
}

func (a *app) serviceCommand() *cobra.Command {
	var f serviceFlags
	service := &cobra.Command{
		Use:   "service",
		Short: "Install the daemon as a service of systemd",
		Long: `Install the daemon as a service of systemd: for this user, or with --system (and
by default for root) for the user hayward of this machine.

The unit file is written and removed, and nothing else: the commands that make
systemd take notice are printed. A file that somebody changed is left alone
without --force. With the service, verbs find a daemon that runs; without it they
start one when it is needed.`,
		Example: "  hayward service install --dry-run\n  hayward service install\n  hayward service status",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []struct {
		name, short, example string
		run                  func(place, serviceFlags) (serviceState, error)
		changes              bool
	}{
		{"install", "Write the unit file", "  hayward service install\n  sudo hayward service install --system", place.install, true},
		{"uninstall", "Remove the unit file", "  hayward service uninstall", place.uninstall, true},
		{"status", "Say whether the unit file is there and as it was written", "  hayward service status --json", place.status, false},
	} {
		cmd := &cobra.Command{
			Use: sub.name, Short: sub.short, Example: sub.example, Args: cobra.NoArgs,
			RunE: a.verb(func(context.Context, *cobra.Command, []string) error {
				p, err := a.servicePlace(f)
				if err != nil {
					return err
				}
				state, err := sub.run(p, f)
				if err != nil {
					return err
				}
				return a.printService(state)
			}),
		}
		cmd.Flags().BoolVar(&f.user, "user", false, "of this user")
		cmd.Flags().BoolVar(&f.system, "system", false, "of the machine")
		cmd.MarkFlagsMutuallyExclusive("user", "system")
		if sub.changes {
			cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done and do nothing")
			cmd.Flags().BoolVar(&f.force, "force", false, "also with a file that somebody changed")
		}
		service.AddCommand(cmd)
	}
	return service
}

func (a *app) printService(s serviceState) error {
	if a.json {
		return a.printJSON(s)
	}
	line := s.State
	if s.Done != "" {
		line = s.Done
		if s.DryRun {
			line = "would be " + line
		}
	}
	if err := a.printf("%s: %s\n", s.Unit, line); err != nil {
		return err
	}
	for i, next := range s.Next {
		if i == 0 {
			a.say("next:")
		}
		a.say("  %s", next)
	}
	return nil
}
