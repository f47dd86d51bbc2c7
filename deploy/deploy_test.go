package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// known are the directives that units may have here, with the release of systemd
// that brought them if that is younger than Debian 12's (systemd.directives(7)).
var known = map[string]int{
	"Unit.Description": 0, "Unit.Documentation": 0, "Install.WantedBy": 0,
	"Service.Type": 0, "Service.NotifyAccess": 0, "Service.User": 0, "Service.Group": 0, "Service.ExecStart": 0, "Service.EnvironmentFile": 0,
	"Service.StateDirectory": 0, "Service.StateDirectoryMode": 0, "Service.RuntimeDirectory": 0, "Service.RuntimeDirectoryMode": 0,
	"Service.RuntimeDirectoryPreserve": 0, "Service.CacheDirectory": 0, "Service.CacheDirectoryMode": 0, "Service.ConfigurationDirectory": 0,
	"Service.Restart": 0, "Service.RestartSec": 0, "Service.TimeoutStartSec": 0, "Service.TimeoutStopSec": 0, "Service.WatchdogSec": 0,
	"Service.KillMode": 0, "Service.OOMPolicy": 0, "Service.Delegate": 0, "Service.DelegateSubgroup": 254, "Service.LimitNOFILE": 0, "Service.TasksMax": 0,
	"Service.NoNewPrivileges": 0, "Service.CapabilityBoundingSet": 0, "Service.AmbientCapabilities": 0, "Service.ProtectSystem": 0,
	"Service.ProtectKernelModules": 0, "Service.RestrictRealtime": 0, "Service.RestrictSUIDSGID": 0, "Service.LockPersonality": 0,
	"Service.SystemCallArchitectures": 0, "Service.RestrictAddressFamilies": 0,
}

var units = map[string]func(string) string{"user": UserUnit, "system": SystemUnit}

// parse reads a unit: its directives as Section.Name, each of them once.
func parse(t *testing.T, text string) map[string]string {
	t.Helper()
	out, section := make(map[string]string), ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		require.False(t, strings.HasSuffix(line, `\`), "no continued lines: %s", line)
		if line == "" || line[0] == '#' {
			continue
		}
		if m := regexp.MustCompile(`^\[([A-Z][a-z]+)\]$`).FindStringSubmatch(line); m != nil {
			section = m[1]
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		require.True(t, ok, line)
		key := section + "." + name
		require.NotContains(t, out, key)
		out[key] = value
	}
	return out
}

func TestUnits(t *testing.T) {
	for name, unit := range units {
		t.Run(name, func(t *testing.T) {
			directives := parse(t, unit("/usr/bin/hayward"))
			for d := range directives {
				require.Contains(t, known, d)
			}
			require.Equal(t, "/usr/bin/hayward serve --handover", directives["Service.ExecStart"])
			require.Equal(t, "notify", directives["Service.Type"])
			require.Equal(t, "process", directives["Service.KillMode"], "or subagents do not survive a restart")
			require.Equal(t, "yes", directives["Service.Delegate"])
			require.NotEmpty(t, directives["Service.WatchdogSec"])
			stop, err := strconv.Atoi(directives["Service.TimeoutStopSec"])
			require.NoError(t, err)
			require.Greater(t, stop, 60, "the daemon takes up to a minute to end its subagents")
			for _, never := range []string{
				"RestrictNamespaces", "SystemCallFilter", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "ProcSubset",
				"ProtectControlGroups", "ProtectHome", "PrivateTmp", "PrivateUsers", "MemoryDenyWriteExecute",
			} {
				require.NotContains(t, directives, "Service."+never, "subagents cannot live with it")
			}
		})
	}
}

func TestPathOfTheProgram(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/local/bin/hayward": "/usr/local/bin/hayward",
		"/opt/my tools/hayward":  `"/opt/my tools/hayward"`,
		`/opt/100%/a"b$c\d`:      `"/opt/100%%/a\"b$$c\\d"`,
	} {
		require.Contains(t, UserUnit(path), "\nExecStart="+want+" serve --handover\n")
	}
}

func TestSystemdTakesTheUnits(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs the program systemd-analyze")
	}
	out, err := exec.Command(verify, "--version").Output()
	require.NoError(t, err)
	release, err := strconv.Atoi(regexp.MustCompile(`^systemd (\d+)`).FindStringSubmatch(string(out))[1])
	require.NoError(t, err)
	dir := t.TempDir()
	program := filepath.Join(dir, "hayward")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	for name, unit := range units {
		file := filepath.Join(dir, "hayward-"+name+".service")
		require.NoError(t, os.WriteFile(file, []byte(unit(program)), 0o644))
		out, err := exec.Command(verify, "verify", "--man=no", file).CombinedOutput()
		require.NoError(t, err, string(out))
		for line := range strings.Lines(string(out)) {
			if !strings.HasPrefix(line, file) {
				continue // of units of this machine
			}
			m := regexp.MustCompile(`Unknown key '(\w+)' in section \[Service\], ignoring`).FindStringSubmatch(line)
			require.NotNil(t, m, line)
			require.Greater(t, known["Service."+m[1]], release, line)
		}
	}
}
