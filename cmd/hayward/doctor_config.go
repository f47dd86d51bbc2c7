package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
)

// examineConfig tells whether the configuration is sound and which files count.
func (a *app) examineConfig(d *diagnosis) {
	c, bad, err := a.readConfig()
	if err != nil {
		d.add("configuration", verdictMissing, "", "%s", err.Error())
		return
	}
	if bad != nil {
		d.add("configuration", verdictMissing, "see: hayward config check", "%s", bad.Error())
		return
	}
	var used []string
	for _, f := range c.Files() {
		if f.State == config.FileUsed {
			used = append(used, f.Path)
		}
	}
	d.add("configuration", verdictOK, "", "%s", have(len(used) > 0, strings.Join(used, " "), "none, everything has its default"))
	for _, w := range c.Warnings() {
		d.add("configuration", verdictLess, "", "%s", w)
	}
	for _, k := range []*config.Key{config.SandboxProfile, config.SandboxBestEffort, config.Session, config.SpawnMaxRuntime, config.SpawnIdleTimeout, config.SpawnMaxMemory, config.SpawnIsolation} {
		if v := c.Value(k); v.Text != "" {
			d.add(k.Name, verdictFact, "", "%s (%s)", v.Text, v.Origin)
		}
	}
}

// daemonConfig is what a daemon that is started now would be configured as, or
// nil.
func (a *app) daemonConfig() *config.Config {
	s, err := a.sources("")
	if err != nil {
		return nil
	}
	s.Getenv = nil
	c, err := config.Load(s)
	if err != nil {
		return nil // examineConfig has told
	}
	return c
}

// configuredLimits tells the limits of the daemon that would be started.
func (a *app) configuredLimits(d *diagnosis) {
	c := a.daemonConfig()
	if c == nil {
		return
	}
	shown := shownLimits(c)
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		d.add("limit "+name, verdictFact, "", "%s (%s)", noBound(shown[name].Text), shown[name].Origin)
	}
}

// limitsInForce tells the limits of the daemon that runs, and where the
// configuration has changed since it started.
func (a *app) limitsInForce(d *diagnosis, reply events.StatusReply) {
	var now map[string]config.Value
	if c := a.daemonConfig(); c != nil {
		now = shownLimits(c)
	}
	inForce := map[string]string{}
	for name, n := range reply.Limits {
		inForce[name] = shownLimit(name, n)
	}
	if reply.AtLimit != "" {
		inForce["at_limit"] = reply.AtLimit
	}
	for _, name := range slices.Sorted(maps.Keys(inForce)) {
		text, origin := inForce[name], reply.Origins[name]
		v, known := now[name]
		if !known || strings.HasPrefix(origin, "flag") || noBound(v.Text) == text {
			d.add("limit "+name, verdictFact, "", "%s (%s)", text, origin)
			continue
		}
		d.add("limit "+name, verdictLess, "hayward shutdown --handover, then the next daemon has it",
			"%s (%s), and now configured as %s (%s)", text, origin, v.Text, v.Origin)
	}
}

// noBound is what a size that bounds nothing is called.
func noBound(text string) string {
	if text == "" || text == "0" {
		return "none"
	}
	return text
}

// shownLimit is a limit as the configuration has it.
func shownLimit(name string, n int64) string {
	switch {
	case strings.HasSuffix(name, "_ms"):
		return config.Duration(time.Duration(n) * time.Millisecond)
	case strings.HasSuffix(name, "_bytes"):
		return noBound(config.Size(n))
	}
	return config.Count(n)
}
