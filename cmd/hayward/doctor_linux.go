package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/cgroup"
)

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err.Error()
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}

// userNamespaceLimit says how many user namespaces there may be, where that is
// bounded to none or by a switch.
func userNamespaceLimit() string {
	var notes []string
	for file, closed := range map[string]string{
		"/proc/sys/user/max_user_namespaces":                     "0",
		"/proc/sys/kernel/unprivileged_userns_clone":             "0",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
	} {
		if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) == closed {
			notes = append(notes, filepath.Base(file)+" is "+closed)
		}
	}
	if len(notes) == 0 {
		return ""
	}
	return ", but " + strings.Join(notes, ", ")
}

// writable says why this process cannot write a directory, or nil.
func writable(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("it is not writable: %w", err)
	}
	return nil
}

// cgroupsHelp explains a lack of cgroups.
const cgroupsHelp = "not needed where PID namespaces can be had"

// cgroups tells what control groups can be used for.
func (d *diagnosis) cgroups() {
	if why := cgroupKill(); why == "" {
		d.add("cgroup v2 kill", verdictOK, "", "can be used")
	} else {
		d.add("cgroup v2 kill", verdictLess, "", "%s (%s)", why, cgroupsHelp)
	}
	d.controller("pids", "another process limit is used")
	d.controller("memory", "spawns with --max-memory are refused")
}

// controller tells whether a limit of a cgroup controller can be set.
func (d *diagnosis) controller(name, without string) {
	parent, err := cgroup.Find(name)
	if err != nil {
		d.add("cgroup "+name, verdictLess, "", "%v (%s)", err, without)
		return
	}
	version := "v1"
	if parent.V2 {
		version = "v2"
	}
	d.add("cgroup "+name, verdictOK, "", "%s, %s", version, parent.Dir)
}

// cgroupKill says why a cgroup v2 leaf with cgroup.kill cannot be used, or
// nothing.
func cgroupKill() string {
	parent, err := cgroup.Find(cgroup.Unified)
	if err != nil {
		return err.Error()
	}
	if _, err := os.Stat(filepath.Join(parent.Dir, "cgroup.kill")); err == nil {
		return ""
	}
	// The root group has no cgroup.kill; its children have one if the kernel does.
	var u unix.Utsname
	if _, err := os.Stat(filepath.Join(parent.Dir, "cgroup.type")); err != nil &&
		unix.Uname(&u) == nil && atLeast(unix.ByteSliceToString(u.Release[:]), 5, 14) {
		return ""
	}
	return "the kernel has no cgroup.kill (Linux 5.14)"
}

func atLeast(release string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || (a == major && b >= minor)
}
