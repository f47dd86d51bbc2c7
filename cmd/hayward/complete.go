package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

// completeTimeout keeps a shell responsive.
const completeTimeout = 500 * time.Millisecond

// completeIDs completes the names and ids of subagents from the daemon that
// runs. Without one, or when it takes too long, there is nothing to offer.
func (a *app) completeIDs(finished bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		c, err := a.connectIfRunning(ctx)
		if err != nil {
			return nil, none
		}
		list, err := c.ListAll(ctx, events.ListActive{IncludeFinished: finished})
		if c.done(err) != nil {
			return nil, none
		}
		var offers []string
		for _, s := range list.Subagents {
			for _, ref := range []string{s.Name, s.SubagentID} {
				if ref != "" && strings.HasPrefix(ref, prefix) && !slices.Contains(given, ref) {
					offers = append(offers, ref+"\t"+oneLine(shownStatus(s)+" "+s.CommandLine))
				}
			}
		}
		return offers, none | cobra.ShellCompDirectiveKeepOrder
	}
}
