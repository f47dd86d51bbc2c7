package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// helpCommand is cobra's, but an unknown word is an error.
func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command",
		Example: "  hayward help spawn\n  hayward help config show",
		ValidArgsFunction: func(cmd *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, rest, err := cmd.Root().Find(words)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var offers []string
			for _, c := range at.Commands() {
				if c.IsAvailableCommand() {
					offers = append(offers, c.Name()+"\t"+c.Short)
				}
			}
			return offers, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			at, rest, err := cmd.Root().Find(words)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("there is no command %q", strings.Join(words, " "))
			}
			at.InitDefaultHelpFlag() // else the help does not list it
			return at.Help()
		},
	}
}

// shells are those that completion has a script for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completionCommand() *cobra.Command {
	var plain bool
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the script that completes commands in a shell",
		Long: `Print the script that completes commands, flags, and the names and ids of
subagents in a shell: bash (with the package bash-completion), zsh, fish or
powershell.`,
		Example: `  source <(hayward completion bash)                              # this shell
  hayward completion bash > ~/.local/share/bash-completion/completions/hayward
  hayward completion zsh > "${fpath[1]}/_hayward"
  hayward completion fish > ~/.config/fish/completions/hayward.fish`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return fmt.Errorf("name one shell: %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: a.verb(func(_ context.Context, cmd *cobra.Command, args []string) error {
			return a.writeCompletion(cmd.Root(), args[0], !plain)
		}),
	}
	cmd.Flags().BoolVar(&plain, "no-descriptions", false, "complete without describing")
	return cmd
}

func (a *app) writeCompletion(root *cobra.Command, shell string, described bool) error {
	var b strings.Builder
	write := map[string]func(io.Writer) error{
		"bash":       func(w io.Writer) error { return root.GenBashCompletionV2(w, described) },
		"zsh":        root.GenZshCompletion,
		"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, described) },
		"powershell": root.GenPowerShellCompletionWithDesc,
	}
	if !described {
		write["zsh"], write["powershell"] = root.GenZshCompletionNoDesc, root.GenPowerShellCompletion
	}
	if err := write[shell](&b); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	return a.write([]byte(b.String()))
}

// pointToCompletion makes the verb completions, whose name is close, tell where
// shell completion is.
func pointToCompletion(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 1 && slices.Contains(shells, args[0]):
			return fmt.Errorf("completions are those of subagents; the script for the shell prints: hayward completion %s", args[0])
		case len(args) > 0:
			return errors.New("takes no arguments; ids go behind --ack and --suppress")
		}
		return nil
	}
	return cmd
}

// noting remembers that a write failed: help is written by code that does not
// look.
type noting struct {
	w   io.Writer
	err error
}

// Write implements [io.Writer].
func (n *noting) Write(p []byte) (int, error) {
	written, err := n.w.Write(p)
	if err != nil && n.err == nil {
		n.err = err
	}
	return written, err
}
