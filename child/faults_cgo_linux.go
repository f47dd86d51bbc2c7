//go:build cgo

package child

/*
#include <signal.h>
#include <stddef.h>

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
*/
import "C"

// guardFaults keeps forged faults from the Go runtime, see the comment in C.
// sigaction fails only for signals that do not exist.
func guardFaults() {
	if C.guard_faults() != 0 {
		panic("child: sigaction refused a standard signal")
	}
}
