//go:build man

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/internal/manual"
)

// A program that is built with the tag man can write the manual pages.
func init() {
	extraCommands = append(extraCommands, func(a *app) *cobra.Command {
		return &cobra.Command{
			Use:     "man DIR",
			Short:   "Write the manual pages into a directory",
			Example: "  hayward man ./man",
			Hidden:  true,
			Args:    cobra.ExactArgs(1),
			RunE: a.verb(func(_ context.Context, cmd *cobra.Command, args []string) error {
				return manual.Write(cmd.Root(), buildVersion(), args[0])
			}),
		}
	})
}
