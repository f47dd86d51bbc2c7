package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

// version is set by the linker in a release.
var version string

// buildVersion is the release, or the module's version, or the commit.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision + modified
}

// versionInfo is what version --json prints.
type versionInfo struct {
	Version  string `json:"version"`
	Contract string `json:"contract"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisVersion() versionInfo {
	return versionInfo{
		Version: buildVersion(), Contract: events.ServiceVersion,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func versionLine() string {
	v := thisVersion()
	return fmt.Sprintf("hayward %s (contract %s, %s, %s)", v.Version, v.Contract, v.Go, v.Platform)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the wire contract",
		Example: "  hayward version\n  hayward version --json",
		Args:    cobra.NoArgs,
		RunE: a.verb(func(context.Context, *cobra.Command, []string) error {
			if a.json {
				return a.printJSON(thisVersion())
			}
			return a.printf("%s\n", versionLine())
		}),
	}
}
