package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernel returns the running kernel's version, or zeros.
func kernel() (major, minor int) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return 0, 0
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return 0, 0
	}
	return major, minor
}

// landlockABI returns the kernel's Landlock version, 0 without Landlock.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// userNamespaces reports whether a process can be started in a user namespace
// of its own.
func userNamespaces() bool {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return cmd.Run() == nil
}

// writableController reports whether groups can be made under a cgroup v1
// controller, or may be under the one of v2.
func writableController(name string) bool {
	if unix.Access("/sys/fs/cgroup/"+name+"/cgroup.procs", unix.W_OK) == nil {
		return true
	}
	b, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	return err == nil && writableCgroup() && strings.Contains(" "+string(b)+" ", name)
}

// writableCgroup reports whether cgroup v2 is mounted and may be written.
func writableCgroup() bool {
	return unix.Access("/sys/fs/cgroup/cgroup.controllers", unix.R_OK) == nil &&
		unix.Access("/sys/fs/cgroup/cgroup.procs", unix.W_OK) == nil
}

// mayMount reports whether the effective capabilities hold CAP_SYS_ADMIN.
func mayMount() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
