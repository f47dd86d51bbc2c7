//go:build linux && cgo

package main

/*
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
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
*/
import "C"

import (
	"syscall"
	"unsafe"
)

func int80() (string, error) { return foreign(int(C.hw_int80())) }
func x32() (string, error)   { return foreign(int(C.hw_x32())) }

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
