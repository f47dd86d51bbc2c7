package main

import (
	"github.com/spf13/cobra"
)

const rootHelp = `Hayward runs subagents: sandboxed child processes that work in parallel, are
watched, can be waited for and cancelled, and whose results are kept.

The verbs talk to a daemon that starts by itself when it is needed and leaves
when nobody has needed it for 15 minutes. Closing a terminal ends nothing.

Where an ID is asked for, a subagent's name or the last four or more characters
of its id will do. What looks like a whole id is one, else a name counts before
the end of an id; of several with one name, the one that is not finished.`

const rootExamples = `  hayward spawn -- make test
  hayward spawn --detach --name docs -- make docs
  hayward ps
  hayward wait docs
  hayward logs -f docs
  hayward run plan.toml`

// The groups of the help.
const (
	groupWork  = "work"
	groupSee   = "see"
	groupOwner = "owner"
)

// extraCommands are those of special builds.
var extraCommands []func(*app) *cobra.Command

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "hayward",
		Short:         "Run sandboxed subagents in parallel",
		Long:          rootHelp + "\n\n" + exitHelp,
		Example:       rootExamples,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON on stdout")
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Work:"},
		&cobra.Group{ID: groupSee, Title: "Look:"},
		&cobra.Group{ID: groupOwner, Title: "The daemon and this program:"},
	)
	for group, commands := range map[string][]*cobra.Command{
		groupWork: {
			a.withSettings(a.spawnCommand()), a.withSettings(a.resumeCommand()), a.withSettings(a.runCommand()), a.waitCommand(),
			a.withSettings(a.cancelCommand()), a.rmCommand(), a.pruneCommand(), a.worktreeCommand(), a.withSettings(a.mcpCommand()),
		},
		groupSee: {
			a.queryCommand(), a.psCommand(), a.withSettings(pointToCompletion(a.completionsCommand())),
			a.withSettings(a.outstandingCommand()), a.reportCommand(), a.logsCommand(), a.transcriptCommand(), a.inspectCommand(),
			a.agentsCommand(),
		},
		groupOwner: {
			a.sandboxCommand(), a.serveCommand(), a.shutdownCommand(), a.configCommand(), a.trustCommand(), a.doctorCommand(), a.serviceCommand(), a.loadCommand(),
			a.completionCommand(), a.versionCommand(),
		},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.loadClientCommand(), a.validateCommand())
	for _, extra := range extraCommands {
		root.AddCommand(extra(a))
	}
	root.CompletionOptions.DisableDefaultCmd = true // completion is ours
	help := a.helpCommand()
	help.GroupID = groupOwner
	root.SetHelpCommand(help)
	a.completeFlags(root)
	return root
}
