//go:build linux && cgo

package main

/*
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// getpid of the 32-bit ABI: 20.
static long hw_int80(void)
{
#ifdef __x86_64__
	long out;
	__asm__ volatile("int $0x80" : "=a"(out) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return out;
#else
	return -ENOSYS;
#endif
}

// getpid of the x32 ABI.
static long hw_x32(void)
{
#ifdef __x86_64__
	long out = syscall(0x40000000 | SYS_getpid);
	return out < 0 ? -errno : out;
#else
	return -ENOSYS;
#endif
}

// hw_flood forks up to n processes that wait for the end of a pipe, ends them,
// and returns how many there were at once; *error is why there were no more.
static int hw_flood(int n, int *error)
{
	int ends[2], started = 0;
	char b;
	*error = 0;
	if (pipe(ends)) {
		*error = errno;
		return 0;
	}
	while (started < n) {
		pid_t pid = fork();
		if (pid == 0) {
			close(ends[1]);
			while (read(ends[0], &b, 1) < 0 && errno == EINTR)
				;
			_exit(0);
		}
		if (pid < 0) {
			*error = errno;
			break;
		}
		started++;
	}
	close(ends[1]);
	for (int i = 0; i < started; i++)
		while (waitpid(-1, NULL, 0) < 0 && errno == EINTR)
			;
	close(ends[0]);
	return started;
}
*/
import "C"

import (
	"strconv"
	"syscall"
	"unsafe"
)

func int80() (string, error) { return foreign(int(C.hw_int80())) }
func x32() (string, error)   { return foreign(int(C.hw_x32())) }

// flood fills the table of processes and empties it again.
func flood(a []string) (string, error) {
	var why C.int
	started := C.hw_flood(C.int(number(a[0])), &why)
	return strconv.Itoa(int(started)), errnoOrNil(syscall.Errno(why))
}

func foreign(rc int) (string, error) {
	if rc < 0 {
		return "", syscall.Errno(-rc)
	}
	return "", nil
}

func addressOf(b *[64]byte) uintptr { return uintptr(unsafe.Pointer(b)) }

func errnoOrNil(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
