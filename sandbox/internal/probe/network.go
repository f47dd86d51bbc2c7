//go:build linux && cgo

package main

import (
	"net"

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
