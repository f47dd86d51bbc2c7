package main

import (
	"os"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/paths"
	"github.com/hayward-dev/hayward/sandbox"
)

// appArmorProfile lets one program have user namespaces where an AppArmor rule
// closes them to all others.
const appArmorProfile = `write to /etc/apparmor.d/hayward: "abi <abi/4.0>, profile hayward EXE flags=(unconfined) { userns, }", then: apparmor_parser -r /etc/apparmor.d/hayward`

// sandboxes tells which profiles can be enforced here, and what stands in the way.
func (d *diagnosis) sandboxes(s sandbox.Support, p paths.Paths) {
	for _, network := range []events.Network{events.NetworkNone, events.NetworkLoopback} {
		name := "sandbox network " + string(network)
		if lacks := s.Lacks(network); len(lacks) > 0 {
			d.add(name, verdictLess, "", "missing %s", strings.Join(lacks, "; "))
		} else if network == events.NetworkNone && !s.NetworkNamespace {
			d.add(name, verdictLess, "", "by seccomp alone: there are no network namespaces")
		} else {
			d.add(name, verdictOK, "", "can be enforced")
		}
	}
	if _, refusal := sandbox.LoadProfiles(p.Profiles(), ""); refusal != nil {
		d.add("sandbox profiles", verdictLess, refusal.Remedy, "%s", refusal.Message)
	} else {
		d.add("sandbox profiles", verdictOK, "", "%s", p.Profiles())
	}
	if read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && s.Namespaces == sandbox.NamespacesNone {
		exe, err := os.Executable()
		if err != nil {
			exe = "/path/to/hayward"
		}
		d.add("apparmor", verdictLess, strings.Replace(appArmorProfile, "EXE", exe, 1), "it closes user namespaces to ordinary programs")
	}
	d.wsl()
}

// wsl tells of the Windows Subsystem for Linux, whose mounts of Windows drives
// are served by a program outside of the kernel's rules.
func (d *diagnosis) wsl() {
	if !strings.Contains(strings.ToLower(read("/proc/sys/kernel/osrelease")), "microsoft") {
		return
	}
	d.add("wsl", verdictFact, "", "this is WSL; version 2 has a kernel that can enforce the profiles, version 1 has not")
	for line := range strings.Lines(read("/proc/self/mounts")) {
		if f := strings.Fields(line); len(f) > 2 && (f[2] == "9p" || f[2] == "drvfs") {
			d.add("wsl drive", verdictLess, "keep workspaces on the Linux file system", "%s is a Windows drive: hard links and owners are not those of Linux there", f[1])
		}
	}
}

func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
