package child_test

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/testkit"
)

func TestMain(m *testing.M) {
	// The test binary is also a program that tests run inside a child.
	if len(os.Args) > 2 && os.Args[1] == "forge-faults" {
		os.Exit(forgeFaults(os.Args[2]))
	}
	testkit.LeakCheck(m)
}

// forgeFaults sends a process signals that look as little like a kill as a
// process can make them: queued with a value, and as readiness of a descriptor.
func forgeFaults(target string) int {
	pid, err := strconv.Atoi(target)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for sig := unix.Signal(1); sig <= 64; sig++ {
		switch sig {
		case unix.SIGKILL, unix.SIGSTOP:
			continue
		case 32, 33, 34:
			// Of the C library; Go leaves them alone, and only pid 1 is safe from
			// their default action.
			if pid != 1 {
				continue
			}
		}
		info := struct {
			signo, errno, code, _ int32
			pid, uid              int32
			value                 uint64
			_                     [96]byte
		}{signo: int32(sig), code: -1 /* SI_QUEUE */}
		_, _, errno := syscall.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(sig), uintptr(unsafe.Pointer(&info)))
		if errno != 0 {
			fmt.Fprintf(os.Stderr, "queue %v: %v\n", sig, errno)
			return 1
		}
		if err := readiness(pid, sig); err != nil {
			fmt.Fprintf(os.Stderr, "readiness %v: %v\n", sig, err)
			return 1
		}
	}
	fmt.Println("forged")
	return 0
}

// readiness makes the kernel signal pid because a pipe became readable.
func readiness(pid int, sig unix.Signal) error {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return err
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	for _, step := range []struct{ cmd, arg int }{{unix.F_SETOWN, pid}, {unix.F_SETSIG, int(sig)}, {unix.F_SETFL, unix.O_ASYNC}} {
		if _, err := unix.FcntlInt(uintptr(fds[0]), step.cmd, step.arg); err != nil {
			return err
		}
	}
	_, err := unix.Write(fds[1], []byte("x"))
	return err
}
