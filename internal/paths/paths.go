// Package paths finds the directories Hayward keeps things in.
package paths

import (
	"fmt"
	"os"
	"path/filepath"
)

// Paths are the absolute directories of one coordinator.
type Paths struct {
	// State holds the store, the run directories, the children's socket and the
	// log. It survives reboots.
	State string
	// Runtime holds the clients' socket and token. It may be emptied at any time.
	Runtime string
	// Config holds config.toml.
	Config string
	// Cache is the root of the caches that sandboxed children may write.
	Cache string
}

// FromEnvironment resolves the directories from HAYWARD_STATE_DIR and
// HAYWARD_RUNTIME_DIR, systemd's variables, the XDG base directories and the
// home directory, in this order. getenv is [os.Getenv] outside tests.
func FromEnvironment(getenv func(string) string) (Paths, error) {
	home := getenv("HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			home = ""
		}
	}
	var missing []string
	pick := func(name string, own []string, xdg, below string) string {
		for _, v := range own {
			if dir := getenv(v); filepath.IsAbs(dir) {
				return filepath.Clean(dir)
			}
		}
		if dir := getenv(xdg); filepath.IsAbs(dir) {
			return filepath.Join(dir, "hayward")
		}
		if below != "" && home != "" {
			return filepath.Join(home, below, "hayward")
		}
		if below != "" {
			missing = append(missing, name)
		}
		return ""
	}
	p := Paths{
		State:   pick("state", []string{"HAYWARD_STATE_DIR", "STATE_DIRECTORY"}, "XDG_STATE_HOME", ".local/state"),
		Runtime: pick("runtime", []string{"HAYWARD_RUNTIME_DIR", "RUNTIME_DIRECTORY"}, "XDG_RUNTIME_DIR", ""),
		Config:  pick("config", []string{"HAYWARD_CONFIG_DIR", "CONFIGURATION_DIRECTORY"}, "XDG_CONFIG_HOME", ".config"),
		Cache:   pick("cache", []string{"HAYWARD_CACHE_DIR", "CACHE_DIRECTORY"}, "XDG_CACHE_HOME", ".cache"),
	}
	if len(missing) > 0 {
		return Paths{}, fmt.Errorf("find the %v directory: HOME is not set (set HOME or HAYWARD_STATE_DIR)", missing)
	}
	// A state directory named on purpose is a coordinator of its own, so its
	// clients' socket must not be the shared one.
	if p.Runtime == "" || (getenv("HAYWARD_STATE_DIR") != "" && getenv("HAYWARD_RUNTIME_DIR") == "") {
		p.Runtime = filepath.Join(p.State, "run")
	}
	return p, nil
}

// Profiles is the file of the user's own sandbox profiles.
func (p Paths) Profiles() string { return filepath.Join(p.Config, "sandbox.toml") }

// The layout of the state directory.

// ClientSocket is where clients connect.
func (p Paths) ClientSocket() string { return filepath.Join(p.Runtime, "bus.sock") }

// ClientToken is the file, mode 0600, that holds the clients' credential.
func (p Paths) ClientToken() string { return filepath.Join(p.Runtime, "client.token") }

// Bus is the directory of the children's socket. It is never re-created.
func (p Paths) Bus() string { return filepath.Join(p.State, "bus") }

// ChildSocket is where children connect.
func (p Paths) ChildSocket() string { return filepath.Join(p.Bus(), "bus.sock") }

// Store is the JetStream directory.
func (p Paths) Store() string { return filepath.Join(p.State, "jetstream") }

// Subagents holds one run directory for each subagent.
func (p Paths) Subagents() string { return filepath.Join(p.State, "subagents") }

// RunDir is the run directory of one subagent; id must be valid.
func (p Paths) RunDir(id string) string { return filepath.Join(p.Subagents(), id) }

// Worktrees holds the working trees of subagents, unless the configuration names
// another place.
func (p Paths) Worktrees() string { return filepath.Join(p.State, "worktrees") }

// Runs holds one directory for each run of a plan. Clients write it.
func (p Paths) Runs() string { return filepath.Join(p.State, "runs") }

// Trusted is the list of the projects that are trusted.
func (p Paths) Trusted() string { return filepath.Join(p.State, "trust.json") }

// GatewaySecret makes the credentials that agents present to the gateway.
func (p Paths) GatewaySecret() string { return filepath.Join(p.State, "gateway.secret") }

// Bin is where the embedded hayward-child is unpacked.
func (p Paths) Bin() string { return filepath.Join(p.State, "bin") }

// Lock is the file locked by the one coordinator of this state directory.
func (p Paths) Lock() string { return filepath.Join(p.State, "lock") }

// Log is the coordinator's log when it runs in the background.
func (p Paths) Log() string { return filepath.Join(p.State, "hayward.log") }
