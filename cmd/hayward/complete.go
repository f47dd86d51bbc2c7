package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox"
)

// completeTimeout keeps a shell responsive.
const completeTimeout = 500 * time.Millisecond

// known lists the subagents of the daemon that runs. Without one, or when it
// takes too long, there is nothing to offer.
func (a *app) known(ctx context.Context, finished bool) []events.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	c, err := a.connectIfRunning(ctx)
	if err != nil {
		return nil
	}
	list, err := c.ListAll(ctx, events.ListActive{IncludeFinished: finished})
	if c.done(err) != nil {
		return nil
	}
	return list.Subagents
}

// completeIDs completes the names and ids of subagents, the youngest first.
func (a *app) completeIDs(finished bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var offers, seen []string
		list := a.known(cmd.Context(), finished)
		slices.Reverse(list)
		for _, s := range list {
			for _, ref := range []string{s.Name, s.SubagentID} {
				if ref != "" && strings.HasPrefix(ref, prefix) && !slices.Contains(given, ref) && !slices.Contains(seen, ref) {
					seen = append(seen, ref)
					offers = append(offers, ref+"\t"+oneLine(shownStatus(s)+" "+s.CommandLine))
				}
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeFlags tells the shell what flags may be, on every command that has
// them.
func (a *app) completeFlags(root *cobra.Command) {
	dirs := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	flags := map[string]cobra.CompletionFunc{
		"sandbox":       a.completeProfiles,
		"isolation":     words(config.SpawnIsolation.Values...),
		"log-level":     words(config.DaemonLogLevel.Values...),
		"type":          words("command"),
		"cwd":           dirs,
		"workspace":     dirs,
		"add-dir":       dirs,
		"session":       a.completeFrom(func(s events.Snapshot) []string { return []string{s.ParentSessionID} }),
		"parent-prompt": a.completeFrom(func(s events.Snapshot) []string { return []string{s.ParentPromptID} }),
		"label": a.completeFrom(func(s events.Snapshot) []string {
			var pairs []string
			for k, v := range s.Labels {
				pairs = append(pairs, k+"="+v)
			}
			return pairs
		}),
		"ack":      a.completeIDs(true),
		"suppress": a.completeIDs(true),
	}
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		for name, complete := range flags {
			if cmd.Flags().Lookup(name) == nil {
				continue
			}
			if _, taken := cmd.GetFlagCompletionFunc(name); taken {
				continue // the verb knows better
			}
			if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
				panic(err) // the flag is there and has none
			}
		}
		for _, c := range cmd.Commands() {
			add(c)
		}
	}
	add(root)
}

// completeProfiles offers the built-in profiles and those that the user or this
// directory defines.
func (a *app) completeProfiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := sandbox.Names
	if p, err := a.paths(); err == nil {
		if set, refusal := sandbox.LoadProfiles(p.Profiles(), workingDir()); refusal == nil {
			names = set.Known()
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// words offers fixed words.
func words(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// completeFrom offers values that the known subagents have.
func (a *app) completeFrom(values func(events.Snapshot) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var offers []string
		for _, s := range a.known(cmd.Context(), true) {
			for _, v := range values(s) {
				if v != "" && !slices.Contains(offers, v) {
					offers = append(offers, v)
				}
			}
		}
		slices.Sort(offers)
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}
