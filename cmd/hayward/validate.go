package main

import (
	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/internal/outputschema"
)

// validateCommand is what the daemon starts to compare a result with its schema: a
// process that may take as much time and memory as it is given.
func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use: outputschema.Verb, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return outputschema.Serve(a.stdin, a.stdout) },
	}
}
