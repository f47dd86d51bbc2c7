package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/sandbox"
)

func (a *app) sandboxExplainCommand() *cobra.Command {
	var f sandboxFlags
	cmd := &cobra.Command{
		Use:   "explain PROFILE",
		Short: "Explain what a sandbox profile opens and closes here",
		Long: `Explain what a sandbox profile opens and closes here, each path with what it is
from, and the gaps: what it is known not to cover. It compiles the plan that a
spawn would get. Nothing is run.`,
		Example:           "  hayward sandbox explain strict\n  hayward sandbox explain my-strict --workspace ~/src/project --json | jq .denied",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeProfiles,
		RunE: a.verb(func(_ context.Context, _ *cobra.Command, args []string) (err error) {
			f.profile = args[0]
			c, err := a.compileSandbox(f)
			if err != nil {
				return err
			}
			defer func() {
				if closeErr := c.close(); err == nil {
					err = closeErr
				}
			}()
			x := c.plan.Explain()
			hideTempDir(&x, c.tempDir)
			if a.json {
				return a.printJSON(x)
			}
			return a.write([]byte(explained(x)))
		}),
	}
	f.register(cmd)
	return cmd
}

// hideTempDir shows a TMPDIR that is made for the explanation alone as what it
// stands for.
func hideTempDir(x *sandbox.Explanation, dir string) {
	for i, w := range x.Writable {
		if w.Path == dir {
			x.Writable[i].Path = "$TMPDIR"
		}
	}
	env := maps.Clone(x.Env)
	if env["TMPDIR"] == dir {
		delete(env, "TMPDIR") // another one each time
	}
	x.Env = env
}

// explained is an explanation for people.
func explained(x sandbox.Explanation) string {
	d := &details{}
	d.add("profile", "%s", x.Profile)
	d.add("extends", "%s", x.Base)
	if !x.Enforced {
		d.add("enforces", "nothing: Sandbox disabled")
		return d.b.String()
	}
	d.add("network", "%s (%s)", x.Network, x.NetworkFrom)
	if x.ReadAll {
		d.add("readable", "everything that is not denied")
	}
	for _, group := range []struct {
		name string
		list []sandbox.Explained
	}{{"readable", x.Readable}, {"writable", x.Writable}, {"denied", x.Denied}} {
		for _, e := range group.list {
			d.add(group.name, "%s (%s)", e.Path, e.From)
		}
	}
	d.add("devices", "%s", strings.Join(x.Devices, " "))
	for _, group := range []struct {
		name string
		list []string
	}{{"kept read-only", x.Closed}, {"hidden", x.Hidden}, {"leads nowhere", x.Missing}, {"gap", x.Gaps}} {
		for _, path := range group.list {
			d.add(group.name, "%s", path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.Env)) {
		d.add("environment", "%s", fmt.Sprintf("%s=%s", name, x.Env[name]))
	}
	d.add("plan", "%s", x.PlanHash)
	return d.b.String()
}
