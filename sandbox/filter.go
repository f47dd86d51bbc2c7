//go:build linux && cgo

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"

	seccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/memfd"
)

const haveFilter = true

// filterKey is all that a filter depends on.
type filterKey struct {
	// Truncate closes truncate(2) by path, which Landlock mediates from ABI 3 on.
	Truncate bool
	// NoNetwork leaves no socket but local ones.
	NoNetwork bool
	// NoTracing closes ptrace and the like among a child's own processes too.
	NoTracing bool
}

// refusedCalls get EPERM whatever their arguments: they change the machine, the
// mounts or the keys of other processes, or open kernel surface that no command
// of a subagent needs.
var refusedCalls = []string{
	"kexec_load", "kexec_file_load", "reboot",
	"init_module", "finit_module", "delete_module",
	"mount", "umount2", "pivot_root", "fsopen", "fsconfig", "fsmount", "fspick",
	"open_tree", "open_tree_attr", "move_mount", "mount_setattr",
	"setns", "open_by_handle_at",
	"swapon", "swapoff", "acct", "quotactl", "quotactl_fd",
	"bpf", "perf_event_open", "userfaultfd",
	"add_key", "request_key", "keyctl",
	"settimeofday", "clock_settime", "clock_adjtime", "sethostname", "setdomainname",
	"vhangup", "nfsservctl", "lookup_dcookie", "syslog", "fanotify_init",
}

// tracingCalls reach into other processes.
var tracingCalls = []string{"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"}

// namespaceFlags are those of clone and unshare that make a namespace: in one of
// its own a process has all capabilities, and with them more of the kernel
// within reach.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

// x86Calls exist on x86 only.
var x86Calls = []string{"iopl", "ioperm"}

// absentCalls get ENOSYS, so that programs fall back to other means. io_uring
// runs operations that no filter sees.
var absentCalls = []string{"io_uring_setup", "io_uring_enter", "io_uring_register"}

// newCalls are calls that libseccomp 2.5 has no name for. From 424 on the
// numbers are the same on every architecture.
var newCalls = map[string]seccomp.ScmpSyscall{
	"quotactl_fd": 443, "fchmodat2": 452, "open_tree_attr": 467,
	"mount_setattr": 442, "move_mount": 429, "open_tree": 428,
	"fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
	"pidfd_getfd": 438, "process_madvise": 440, "clone3": 435,
	"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
}

// filterCache holds one sealed program for each key. Guarded by mu.
var filterCache = struct {
	mu    sync.Mutex
	files map[filterKey]*os.File
}{files: make(map[filterKey]*os.File)}

// filterFile returns a descriptor, owned by the caller, of the program for key.
func filterFile(key filterKey) (*os.File, error) {
	filterCache.mu.Lock()
	defer filterCache.mu.Unlock()
	cached, ok := filterCache.files[key]
	if !ok {
		var err error
		if cached, err = buildFilter(key); err != nil {
			return nil, fmt.Errorf("build the seccomp filter: %w", err)
		}
		filterCache.files[key] = cached
	}
	return duplicate(cached)
}

func buildFilter(key filterKey) (*os.File, error) {
	f, err := seccomp.NewFilter(seccomp.ActAllow)
	if err != nil {
		return nil, err
	}
	defer f.Release()
	// A call of another architecture, or of x32, would not meet any rule.
	if err := f.SetBadArchAction(errno(unix.ENOSYS)); err != nil {
		return nil, fmt.Errorf("set the action for other architectures: %w", err)
	}
	if err := f.SetOptimize(2); err != nil {
		return nil, fmt.Errorf("order the filter as a tree: %w", err)
	}
	b := builder{filter: f}
	for _, name := range refusedCalls {
		b.rule(name, unix.EPERM)
	}
	if arch, err := seccomp.GetNativeArch(); err != nil {
		return nil, err
	} else if arch == seccomp.ArchAMD64 || arch == seccomp.ArchX86 {
		for _, name := range x86Calls {
			b.rule(name, unix.EPERM)
		}
	}
	for _, name := range absentCalls {
		b.rule(name, unix.ENOSYS)
	}
	if key.Truncate {
		b.rule("truncate", unix.EPERM)
	}
	if key.NoTracing {
		for _, name := range tracingCalls {
			b.rule(name, unix.EPERM)
		}
	}
	b.namespaces()
	b.families("socket", key.NoNetwork)
	b.families("socketpair", key.NoNetwork)
	// The request is an unsigned int: the upper half of the register is ignored
	// by the kernel, so it must be here too.
	for _, request := range []uint64{unix.TIOCSTI, unix.TIOCLINUX} {
		b.rule("ioctl", unix.EPERM, condition{1, seccomp.CompareMaskedEqual, []uint64{0xffffffff, request}})
	}
	b.rule("prlimit64", unix.EPERM, condition{0, seccomp.CompareNotEqual, []uint64{0}})
	// A set-user-ID file made inside would be someone's way in from outside; no
	// other call can make one with content without CAP_FSETID.
	for _, call := range []struct {
		name string
		mode uint
	}{{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2}} {
		b.rule(call.name, unix.EPERM, condition{call.mode, seccomp.CompareMaskedEqual, []uint64{unix.S_ISUID, unix.S_ISUID}})
	}
	if b.err != nil {
		return nil, b.err
	}
	return memfd.Sealed("hayward-filter", f.ExportBPF)
}

// namespaces closes every way to a new namespace. The flags of clone3 are behind
// a pointer, so it does not exist: libraries then take clone.
func (b *builder) namespaces() {
	b.rule("clone3", unix.ENOSYS)
	for _, call := range []string{"clone", "unshare"} {
		for flag := uint64(1); flag <= namespaceFlags; flag <<= 1 {
			if flag&namespaceFlags != 0 {
				b.rule(call, unix.EPERM, condition{0, seccomp.CompareMaskedEqual, []uint64{flag, flag}})
			}
		}
	}
}

// families leaves UNIX, INET, INET6 and NETLINK_ROUTE, or UNIX alone. A 64-bit
// comparison is right: what the kernel would cut off the register makes the
// number too large. A closed network reads as a permission, since a program that
// is told of a missing family looks for another.
func (b *builder) families(call string, local bool) {
	if local {
		b.rule(call, unix.EACCES, condition{0, seccomp.CompareNotEqual, []uint64{unix.AF_UNIX}})
		return
	}
	allowed := map[uint64]bool{unix.AF_UNIX: true, unix.AF_INET: true, unix.AF_INET6: true, unix.AF_NETLINK: true}
	const highest = unix.AF_NETLINK
	for family := uint64(0); family <= highest; family++ {
		if !allowed[family] {
			b.rule(call, unix.EAFNOSUPPORT, condition{0, seccomp.CompareEqual, []uint64{family}})
		}
	}
	b.rule(call, unix.EAFNOSUPPORT, condition{0, seccomp.CompareGreater, []uint64{highest}})
	b.rule(call, unix.EAFNOSUPPORT,
		condition{0, seccomp.CompareEqual, []uint64{unix.AF_NETLINK}},
		condition{2, seccomp.CompareNotEqual, []uint64{unix.NETLINK_ROUTE}})
}

// builder adds rules and keeps the first error.
type builder struct {
	filter *seccomp.ScmpFilter
	err    error
}

type condition struct {
	argument uint
	op       seccomp.ScmpCompareOp
	values   []uint64
}

// rule makes call fail with code where all conditions hold. A name that
// libseccomp does not know falls back to its number; no error is ignored.
func (b *builder) rule(call string, code unix.Errno, when ...condition) {
	if b.err != nil {
		return
	}
	number, err := seccomp.GetSyscallFromName(call)
	if errors.Is(err, seccomp.ErrSyscallDoesNotExist) {
		var ok bool
		if number, ok = newCalls[call]; ok {
			err = nil
		}
	}
	if err == nil && number < 0 {
		// A call of other architectures only, such as chmod on arm64: the native
		// one has nothing to filter.
		return
	}
	var conditions []seccomp.ScmpCondition
	for _, w := range when {
		if err != nil {
			break
		}
		var c seccomp.ScmpCondition
		if c, err = seccomp.MakeCondition(w.argument, w.op, w.values...); err == nil {
			conditions = append(conditions, c)
		}
	}
	if err == nil {
		if len(conditions) == 0 {
			err = b.filter.AddRule(number, errno(code))
		} else {
			err = b.filter.AddRuleConditional(number, errno(code), conditions)
		}
	}
	if err != nil {
		b.err = fmt.Errorf("refuse %s: %w", call, err)
	}
}

func errno(code unix.Errno) seccomp.ScmpAction {
	return seccomp.ActErrno.SetReturnCode(int16(code))
}
