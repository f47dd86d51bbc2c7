//go:build cgo

package child

/*
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sigaction go_action[NSIG];

// A fault that a process sent is no fault of ours. The Go runtime recognizes
// kill and tgkill; sigqueue and F_SETSIG it takes for a crash, and a crash of
// pid 1 is the end of the whole tree. The kernel's own faults have a positive
// si_code, which no other process can forge, except for SIGSTKFLT, which the
// kernel never sends.
static void forward_real_faults(int sig, siginfo_t *info, void *context) {
	if (info->si_code > 0 && sig != SIGSTKFLT)
		go_action[sig].sa_sigaction(sig, info, context);
}

static int guard_faults(void) {
	static const int faults[] = { SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSTKFLT, SIGSYS };
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		int sig = faults[i];
		if (sigaction(sig, NULL, &go_action[sig]) != 0)
			return -1;
		if (!(go_action[sig].sa_flags & SA_SIGINFO))
			continue;
		struct sigaction action = go_action[sig];
		action.sa_sigaction = forward_real_faults;
		if (sigaction(sig, &action, NULL) != 0)
			return -1;
	}
	return 0;
}

// The two signals below SIGRTMIN are the C library's own: neither it nor Go
// changes their disposition. A program started by posix_spawn of some versions of
// glibc, as make does it, has them ignored, and that would go on to the command.
static int default_library_signals(void) {
	struct { void (*handler)(int); unsigned long flags; void (*restorer)(void); unsigned long mask; } action = { SIG_DFL };
	for (int sig = 32; sig < SIGRTMIN; sig++)
		if (syscall(SYS_rt_sigaction, sig, &action, NULL, sizeof action.mask) != 0)
			return -1;
	return 0;
}
*/
import "C"

// guardFaults keeps forged faults from the Go runtime, see the comment in C.
// sigaction fails only for signals that do not exist.
func guardFaults() {
	if C.guard_faults() != 0 {
		panic("child: sigaction refused a standard signal")
	}
}

// defaultLibrarySignals gives commands the default of two signals that Go does
// not know, see the comment in C. It does not fail on any Linux.
func defaultLibrarySignals() {
	if C.default_library_signals() != 0 {
		panic("child: rt_sigaction refused a signal of the C library")
	}
}
