package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// newestABI is the newest Landlock ABI whose rights this package knows.
const newestABI = 11

// Probe finds what this system can enforce. It asks the kernel once and
// remembers; that costs about a millisecond.
func Probe() Support { return probed() }

var probed = sync.OnceValue(probe)

func probe() Support {
	s := Support{Constructor: haveFilter, Root: os.Geteuid() == 0}
	s.LandlockABI, s.LandlockReason = probeLandlock()
	s.Seccomp = probeSeccomp()
	s.Namespaces, s.NamespacesReason = probeNamespaces()
	s.NetworkNamespace = probeNetwork(s.Namespaces)
	s.MountTrees = probeMountTrees()
	s.PIDMax = atLeast(6, 14)
	return s
}

func probeLandlock() (int, string) {
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return 0, "this kernel does not have it (Linux 5.13)"
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, "it was disabled at boot"
	case err != nil:
		return 0, err.Error()
	}
	if abi >= requiredABI {
		// Erratum 2: before its fix, threads of one process could not signal each
		// other under the signal scope.
		if errata, err := ll.LandlockGetErrata(); err != nil || errata&2 == 0 {
			return requiredABI - 1, "the kernel's signal scope lacks a fix (erratum 2)"
		}
	}
	return min(abi, newestABI), ""
}

func probeSeccomp() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

func probeMountTrees() bool {
	// An invalid descriptor: EBADF if the call exists at all.
	err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{})
	return !errors.Is(err, unix.ENOSYS)
}

// probeNamespaces forks into the namespaces and lets the exec fail, which tells
// that everything before it worked.
func probeNamespaces() (Namespaces, string) {
	direct := attempt(&syscall.SysProcAttr{Cloneflags: cloneFlags})
	if direct == nil {
		return NamespacesDirect, ""
	}
	// chroot wants a capability: it shows where an AppArmor rule gives a user
	// namespace and takes its capabilities.
	attr := userNamespace()
	attr.Chroot = "/"
	user := attempt(attr)
	if user == nil {
		return NamespacesUser, ""
	}
	reason := fmt.Sprintf("user namespaces: %v", user)
	for _, knob := range []struct{ path, off string }{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0"},
		{"/proc/sys/user/max_user_namespaces", "0"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"},
	} {
		if b, err := os.ReadFile(knob.path); err == nil && strings.TrimSpace(string(b)) == knob.off {
			reason += fmt.Sprintf(" (%s is %s)", strings.ReplaceAll(strings.TrimPrefix(knob.path, "/proc/sys/"), "/", "."), knob.off)
		}
	}
	if os.Geteuid() == 0 {
		reason = fmt.Sprintf("namespaces: %v; %s", direct, reason)
	}
	return NamespacesNone, reason
}

// probeNetwork tries the same with a network namespace.
func probeNetwork(how Namespaces) bool {
	switch how {
	case NamespacesDirect:
		return attempt(&syscall.SysProcAttr{Cloneflags: cloneFlags | unix.CLONE_NEWNET}) == nil
	case NamespacesUser:
		attr := userNamespace()
		attr.Cloneflags |= unix.CLONE_NEWNET
		return attempt(attr) == nil
	}
	return false
}

// attempt returns nil if a child with attr got as far as its exec.
func attempt(attr *syscall.SysProcAttr) error {
	// A name below a device: always ENOTDIR.
	const nowhere = "/dev/null/none"
	_, err := syscall.ForkExec(nowhere, []string{nowhere}, &syscall.ProcAttr{Sys: attr})
	if errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// atLeast reports whether the running kernel is that version or newer.
func atLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}
