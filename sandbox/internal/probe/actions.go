//go:build linux && cgo

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type action struct {
	args int
	run  func(args []string) (string, error)
}

var table map[string]action

func init() {
	table = map[string]action{
		"write":    {1, write},
		"create":   {1, create},
		"append":   {1, appendTo},
		"read":     {1, read},
		"opens":    {2, opens},
		"list":     {1, list},
		"mkdir":    {1, plain(func(a []string) error { return unix.Mkdir(a[0], 0o755) })},
		"unlink":   {1, plain(func(a []string) error { return unix.Unlink(a[0]) })},
		"rename":   {2, plain(func(a []string) error { return unix.Rename(a[0], a[1]) })},
		"link":     {2, plain(func(a []string) error { return unix.Link(a[0], a[1]) })},
		"truncate": {1, plain(func(a []string) error { return unix.Truncate(a[0], 0) })},
		"chmod":    {2, plain(func(a []string) error { return unix.Chmod(a[0], number(a[1])) })},
		"touch": {1, plain(func(a []string) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, a[0], make([]unix.Timespec, 2), 0)
		})},
		"mknod":    {3, plain(func(a []string) error { return unix.Mknod(a[0], number(a[1]), int(number(a[2]))) })},
		"mount":    {1, plain(func(a []string) error { return unix.Mount("none", a[0], "tmpfs", 0, "") })},
		"remount":  {1, plain(func(a []string) error { return unix.Mount("", a[0], "", unix.MS_REMOUNT|unix.MS_BIND, "") })},
		"chown":    {1, plain(func(a []string) error { return unix.Chown(a[0], os.Geteuid(), os.Getegid()) })},
		"xattr":    {1, plain(func(a []string) error { return unix.Setxattr(a[0], "user.probe", []byte("x"), 0) })},
		"getfd":    {2, getFD},
		"sh":       {1, plain(func(a []string) error { return exec.Command("/bin/sh", "-c", a[0]).Run() })},
		"fastmany": {1, fastOpenMany},
		"udpmany":  {1, udpMany},
		"autobind": {0, autobind},
		"umount":   {1, plain(func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) })},
		"chroot":   {1, plain(func(a []string) error { return unix.Chroot(a[0]) })},
		"nested":   {1, nested},
		"ptrace":   {1, plain(func(a []string) error { return traceAttach(int(number(a[0]))) })},
		"vmread":   {1, vmRead},
		"kill":     {2, plain(func(a []string) error { return unix.Kill(int(number(a[0])), unix.Signal(number(a[1]))) })},
		"prlimit":  {1, prlimit},
		"socket":   {3, socket},
		"connect":  {1, connect},
		"dial":     {1, dial},
		"loopback": {0, loopback},
		"mptcp":    {1, mptcp},
		"fastopen": {1, fastOpen},
		"udp":      {1, udp},
		"pair":     {0, pair},
		"ioctl":    {2, ioctl},
		"syscall":  {1, rawSyscall},
		"int80":    {0, func([]string) (string, error) { return int80() }},
		"x32":      {0, func([]string) (string, error) { return x32() }},
		"status":   {1, status},
		"readlink": {1, func(a []string) (string, error) { return os.Readlink(a[0]) }},
		"fds":      {0, fds},
		"procs":    {0, procs},
		"exec":     {1, execute},
		"env":      {1, func(a []string) (string, error) { return os.Getenv(a[0]), nil }},
		"limit":    {1, limit},
		"flood":    {1, flood},
		"busy":     {1, threads},
	}
}

func plain(f func([]string) error) func([]string) (string, error) {
	return func(a []string) (string, error) { return "", f(a) }
}

// number reads an argument; a typing error in a test is fatal. "ppid" is the
// supervisor.
func number(s string) uint32 {
	if s == "ppid" {
		return uint32(os.Getppid())
	}
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(2)
	}
	return uint32(n)
}

func openAnd(path string, flags int, then func(*os.File) error) error {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return err
	}
	if then != nil {
		if err := then(f); err != nil {
			_ = f.Close()
			return err
		}
	}
	return f.Close()
}

func say(f *os.File) error { _, err := f.WriteString("x"); return err }

func write(a []string) (string, error)  { return "", openAnd(a[0], os.O_WRONLY|os.O_TRUNC, say) }
func create(a []string) (string, error) { return "", openAnd(a[0], os.O_WRONLY|os.O_CREATE, say) }
func appendTo(a []string) (string, error) {
	return "", openAnd(a[0], os.O_WRONLY|os.O_APPEND, say)
}

func read(a []string) (string, error) {
	b, err := os.ReadFile(a[0])
	return string(b[:min(len(b), 200)]), err
}

func list(a []string) (string, error) {
	entries, err := os.ReadDir(a[0])
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " "), err
}

// nested tries an action in a user and mount namespace of its own.
func nested(a []string) (string, error) {
	cmd := exec.Command("/proc/self/exe", "act", strings.Join(a, "|"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// traceAttach stops a process, waits for that, and lets it go on.
func traceAttach(pid int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.PtraceAttach(pid); err != nil {
		return err
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		return err
	}
	return syscall.PtraceDetach(pid)
}

func vmRead(a []string) (string, error) {
	var b [1]byte
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	remote := []unix.RemoteIovec{{Base: 0x400000, Len: 1}}
	_, err := unix.ProcessVMReadv(int(number(a[0])), local, remote, 0)
	return "", err
}

func prlimit(a []string) (string, error) {
	var old unix.Rlimit
	return "", unix.Prlimit(int(number(a[0])), unix.RLIMIT_NOFILE, nil, &old)
}

func socket(a []string) (string, error) {
	fd, err := unix.Socket(int(number(a[0])), int(number(a[1])), int(number(a[2])))
	if err != nil {
		return "", err
	}
	return "", unix.Close(fd)
}

// connect dials a stream socket; a leading "@" is the abstract name space.
func connect(a []string) (string, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: a[0]}); err != nil {
		_ = unix.Close(fd)
		return "", err
	}
	return "", unix.Close(fd)
}

// dial connects to a TCP address.
func dial(a []string) (string, error) {
	addr, err := net.ResolveTCPAddr("tcp", a[0])
	if err != nil {
		return "", err
	}
	c, err := net.DialTCP("tcp", nil, addr)
	if err != nil {
		return "", err
	}
	return "", c.Close()
}

// loopback listens on the loopback device and connects to itself.
func loopback([]string) (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, err = dial([]string{l.Addr().String()})
	return "", errors.Join(err, l.Close())
}

func ioctl(a []string) (string, error) {
	f, err := os.OpenFile(a[0], os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	request, err := strconv.ParseUint(a[1], 0, 64)
	if err != nil {
		return "", err
	}
	var b [64]byte
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), uintptr(request), addressOf(&b))
	return "", errnoOrNil(errno)
}

// rawSyscall makes the call with that number and zeros, or the arguments given.
func rawSyscall(a []string) (string, error) {
	var args [6]uintptr
	for i, s := range a[1:] {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			return "", err
		}
		args[i] = uintptr(n)
	}
	_, _, errno := unix.Syscall6(uintptr(number(a[0])), args[0], args[1], args[2], args[3], args[4], args[5])
	return "", errnoOrNil(errno)
}

// status returns a field of /proc/self/status, which must be equal in all threads.
func status(a []string) (string, error) {
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		return "", err
	}
	seen := make(map[string]bool)
	for _, t := range tasks {
		b, err := os.ReadFile(t)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, a[0]+":"); ok {
				seen[strings.TrimSpace(v)] = true
			}
		}
	}
	values := make([]string, 0, len(seen))
	for v := range seen {
		values = append(values, v)
	}
	sort.Strings(values)
	return strings.Join(values, " and "), nil
}

func fds([]string) (string, error) {
	var out []string
	for fd := 0; fd < 1024; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue // closed, or ours and not inherited
		}
		out = append(out, strconv.Itoa(fd))
	}
	return strings.Join(out, " "), nil
}

func procs([]string) (string, error) {
	entries, err := os.ReadDir("/proc")
	var out []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, e.Name())
		}
	}
	return strings.Join(out, " "), err
}

func execute(a []string) (string, error) {
	out, err := exec.Command(a[0], a[1:]...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func limit(a []string) (string, error) {
	var l unix.Rlimit
	err := unix.Getrlimit(int(number(a[0])), &l)
	return fmt.Sprintf("%d %d", l.Cur, l.Max), err
}

// threads makes the runtime hold n threads at once, which stay afterwards, and
// says how many there are: status then speaks of all of them.
func threads(a []string) (string, error) {
	var there, done sync.WaitGroup
	release := make(chan struct{})
	n := int(number(a[0]))
	there.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			there.Done()
			<-release
		})
	}
	there.Wait()
	tasks, err := os.ReadDir("/proc/self/task")
	close(release)
	done.Wait()
	return strconv.Itoa(len(tasks)), err
}

// opens opens and closes a file a number of times and says how long that took.
func opens(args []string) (string, error) {
	begin := time.Now()
	for range number(args[1]) {
		fd, err := unix.Open(args[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		if err := unix.Close(fd); err != nil {
			return "", err
		}
	}
	return time.Since(begin).String(), nil
}
