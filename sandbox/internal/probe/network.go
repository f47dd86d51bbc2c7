//go:build linux && cgo

package main

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// address reads an IPv4 address and a port.
func address(s string) (*unix.SockaddrInet4, error) {
	addr, err := net.ResolveTCPAddr("tcp4", s)
	if err != nil {
		return nil, err
	}
	return &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}, nil
}

// withSocket makes a socket and closes it after use.
func withSocket(kind, protocol int, to string, use func(fd int, to *unix.SockaddrInet4) error) (string, error) {
	sa, err := address(to)
	if err != nil {
		return "", err
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return "", use(fd, sa)
}

// mptcp connects by the protocol that Landlock's TCP rules do not know.
func mptcp(a []string) (string, error) {
	return withSocket(unix.SOCK_STREAM, unix.IPPROTO_MPTCP, a[0], func(fd int, to *unix.SockaddrInet4) error {
		return unix.Connect(fd, to)
	})
}

// fastOpen connects by sending.
func fastOpen(a []string) (string, error) {
	return withSocket(unix.SOCK_STREAM, 0, a[0], func(fd int, to *unix.SockaddrInet4) error {
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, to)
	})
}

// message is struct mmsghdr.
type message struct {
	header unix.Msghdr
	sent   uint32
	_      [4]byte
}

// sendMany sends one message by sendmmsg, which filters of sendto and sendmsg forget.
func sendMany(fd int, to *unix.SockaddrInet4, flags uintptr) error {
	raw := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: to.Addr}
	port := (*[2]byte)(unsafe.Pointer(&raw.Port))
	port[0], port[1] = byte(to.Port>>8), byte(to.Port)
	b := [1]byte{'x'}
	part := unix.Iovec{Base: &b[0]}
	part.SetLen(1)
	m := message{header: unix.Msghdr{Name: (*byte)(unsafe.Pointer(&raw)), Namelen: unix.SizeofSockaddrInet4, Iov: &part}}
	m.header.SetIovlen(1)
	_, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), 1, flags, 0, 0)
	return errnoOrNil(errno)
}

func fastOpenMany(a []string) (string, error) {
	return withSocket(unix.SOCK_STREAM, 0, a[0], func(fd int, to *unix.SockaddrInet4) error {
		return sendMany(fd, to, unix.MSG_FASTOPEN)
	})
}

func udpMany(a []string) (string, error) {
	return withSocket(unix.SOCK_DGRAM, 0, a[0], func(fd int, to *unix.SockaddrInet4) error { return sendMany(fd, to, 0) })
}

// autobind listens without a bind, which Landlock's TCP rules do not know.
func autobind([]string) (string, error) {
	return withSocket(unix.SOCK_STREAM, 0, "127.0.0.1:0", func(fd int, _ *unix.SockaddrInet4) error { return unix.Listen(fd, 1) })
}

func udp(a []string) (string, error) {
	return withSocket(unix.SOCK_DGRAM, 0, a[0], func(fd int, to *unix.SockaddrInet4) error {
		return unix.Sendto(fd, []byte("x"), 0, to)
	})
}

// pair sends through a socket pair, as programs talk to their own children.
func pair([]string) (string, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	return "", unix.Sendmsg(fds[0], []byte("x"), nil, nil, 0)
}

// getFD takes a descriptor of another process.
func getFD(a []string) (string, error) {
	pid, err := unix.PidfdOpen(int(number(a[0])), 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(pid)
	fd, err := unix.PidfdGetfd(pid, int(number(a[1])), 0)
	if err != nil {
		return "", err
	}
	return "", unix.Close(fd)
}
