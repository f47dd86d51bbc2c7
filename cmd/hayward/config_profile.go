package main

import (
	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox"
)

// checkProfile says what is wrong with the sandbox profile that is configured: the
// files that define profiles are not those of the configuration.
func (a *app) checkProfile(v config.Value) []config.Fault {
	if !v.IsSet() {
		return nil
	}
	if _, builtIn := sandbox.ParseProfile(v.Text); builtIn == nil {
		return nil
	}
	set, err := a.loadProfiles("")
	if faults := sandbox.Faults(err); len(faults) > 0 {
		var out []config.Fault
		for _, f := range faults {
			out = append(out, config.Fault{File: f.File, Line: f.Line, Message: f.Message})
		}
		return out
	}
	if err == nil {
		if _, refusal := sandbox.FindProfile(set, v.Text); refusal == nil {
			return nil
		} else {
			err = refusal
		}
	}
	f := config.Fault{File: v.Origin.File, Line: v.Origin.Line, Key: config.SandboxProfile.Name, Message: events.AsError(err).Message}
	if f.File == "" {
		f.File = v.Origin.Name
	}
	return []config.Fault{f}
}
