package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
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

// cgroups tells which of the two ways to bound and end a process tree by a
// cgroup are there.
func (d *diagnosis) cgroups() {
	if why := cgroupKill(); why == "" {
		d.add("cgroup v2 kill", verdictOK, "", "can be used")
	} else {
		d.add("cgroup v2 kill", verdictLess, "", "%s (%s)", why, cgroupsHelp)
	}
	if dir := controllerV1("pids"); dir == "" {
		d.add("cgroup v1 pids", verdictLess, "", "there is none (another process limit is used)")
	} else if err := unix.Access(dir, unix.W_OK); err != nil {
		d.add("cgroup v1 pids", verdictLess, "", "%s: %v (another process limit is used)", dir, err)
	} else {
		d.add("cgroup v1 pids", verdictOK, "", "%s", dir)
	}
}

// cgroupKill says why a cgroup v2 leaf with cgroup.kill cannot be used, or
// nothing.
func cgroupKill() string {
	mount := cgroup2Mount()
	if mount == "" {
		return "cgroup v2 is not mounted"
	}
	own, ok := ownCgroup("")
	if !ok {
		return "this process is in no cgroup v2"
	}
	dir := filepath.Join(mount, own)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Sprintf("%s is not ours: %v", dir, err)
	}
	// The root group has no cgroup.kill; its children have one if the kernel does.
	if own == "/" {
		if found, err := filepath.Glob(filepath.Join(dir, "*", "cgroup.kill")); err != nil || len(found) > 0 {
			return ""
		}
		var u unix.Utsname
		if err := unix.Uname(&u); err == nil && atLeast(unix.ByteSliceToString(u.Release[:]), 5, 14) {
			return ""
		}
		return "the kernel has no cgroup.kill (Linux 5.14)"
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
		return "the kernel has no cgroup.kill (Linux 5.14)"
	}
	return ""
}

func atLeast(release string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || (a == major && b >= minor)
}

// mounts yields the fields of each line of /proc/self/mounts.
func mounts() [][]string {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil
	}
	defer f.Close()
	var all [][]string
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) >= 4 {
			all = append(all, fields)
		}
	}
	return all
}

func cgroup2Mount() string {
	for _, m := range mounts() {
		if m[2] == "cgroup2" {
			return m[1]
		}
	}
	return ""
}

// controllerV1 is this process's directory of a cgroup v1 controller, or empty.
func controllerV1(name string) string {
	for _, m := range mounts() {
		if m[2] != "cgroup" || !strings.Contains(","+m[3]+",", ","+name+",") {
			continue
		}
		own, ok := ownCgroup(name)
		if !ok {
			return ""
		}
		return filepath.Join(m[1], own)
	}
	return ""
}

// ownCgroup is this process's group under a v1 controller, or under v2 for the
// empty name.
func ownCgroup(controller string) (string, bool) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) == 3 && strings.Contains(","+parts[1]+",", ","+controller+",") {
			return parts[2], true
		}
	}
	return "", false
}
