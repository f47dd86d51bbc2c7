//go:build linux && cgo

// What the Go runtime, which starts next, finds: the same for a thousand
// supervisors that wait side by side.

#define _GNU_SOURCE
#include "early.h"

#include <pthread.h>
#include <sys/prctl.h>

// Stacks of the C library's default size lie 8 MiB apart, and each then costs a
// page table of its own. The Go runtime needs a few KiB of them.
static const size_t stack_size = 256 << 10;

// The runtime's monitor sleeps for 20 us at a time whenever a process begins to do
// something. With this slack the kernel wakes it with another timer or that much
// later: a supervisor has one processor for Go and nothing that it may not hold that
// long.
static const unsigned long monitor_slack_ns = 10000000;

unsigned long hw_timer_slack;

// hw_threads cannot fail in a way that matters: without it there are more wakeups
// and more page tables.
void hw_threads(void)
{
	pthread_attr_t attr;
	if (pthread_attr_init(&attr) == 0) {
		if (pthread_attr_setstacksize(&attr, stack_size) == 0)
			pthread_setattr_default_np(&attr);
		pthread_attr_destroy(&attr);
	}
	int slack = prctl(PR_GET_TIMERSLACK);
	if (slack > 0 && prctl(PR_SET_TIMERSLACK, monitor_slack_ns) == 0)
		hw_timer_slack = (unsigned long)slack;
}
