package kernelaudit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The numbers of linux/audit.h and linux/netlink.h.
const (
	auditGet       = 1000
	groupReadLog   = 1
	headerSize     = unix.SizeofNlMsghdr
	statusEnabled  = 4 // offset in struct audit_status
	answerDeadline = time.Second
	maxMessage     = 16 << 10 // MAX_AUDIT_MESSAGE_LENGTH is 8970
)

// Open begins to read, if audit is on and this user may; else the error is
// [ErrOff].
func Open() (*Log, error) {
	on, err := enabled()
	if err != nil {
		return nil, err
	}
	if !on {
		return nil, ErrOff
	}
	return subscribe()
}

// enabled asks whether audit is on.
func enabled() (bool, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return false, off("open", err)
	}
	defer unix.Close(fd)
	timeout := unix.NsecToTimeval(answerDeadline.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return false, fmt.Errorf("ask for the state of audit: %w", err)
	}
	request := make([]byte, headerSize)
	order := binary.NativeEndian
	order.PutUint32(request, headerSize)
	order.PutUint16(request[4:], auditGet)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, off("ask", err)
	}
	answer := make([]byte, maxMessage)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return false, off("ask", err)
	}
	return n >= headerSize+statusEnabled+4 && order.Uint16(answer[4:]) == auditGet &&
		order.Uint32(answer[headerSize+statusEnabled:]) != 0, nil
}

// off turns what a kernel without audit, or one that does not let this user read,
// answers into [ErrOff].
func off(what string, err error) error {
	for _, e := range []error{unix.EPERM, unix.EACCES, unix.EPROTONOSUPPORT, unix.ECONNREFUSED, unix.EAFNOSUPPORT, unix.EAGAIN} {
		if errors.Is(err, e) {
			return ErrOff
		}
	}
	return fmt.Errorf("%s the kernel's audit: %w", what, err)
}

// subscribe joins the group of the log's readers.
func subscribe() (*Log, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_AUDIT)
	if err != nil {
		return nil, off("open", err)
	}
	if err := filter(fd); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("read the kernel's audit: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (groupReadLog - 1)}); err != nil {
		unix.Close(fd)
		return nil, off("read", err)
	}
	f := os.NewFile(uintptr(fd), "audit")
	l := newLog()
	l.close = f.Close
	go l.read(f)
	return l, nil
}

// filter lets nothing but the records of Landlock through: of a busy log nobody is
// woken for the rest.
func filter(fd int) error {
	kind := func(k uint16) uint32 { // as the filter loads it
		var b [2]byte
		binary.NativeEndian.PutUint16(b[:], k)
		return uint32(binary.BigEndian.Uint16(b[:]))
	}
	code := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: kind(typeAccess), Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: kind(typeDomain), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: maxMessage},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
}

// read takes records until the socket is closed.
func (l *Log) read(f *os.File) {
	defer close(l.done)
	b := make([]byte, maxMessage)
	for {
		n, err := f.Read(b)
		switch {
		case errors.Is(err, unix.ENOBUFS):
			continue // some were dropped: hints are a help and no record
		case err != nil:
			return
		}
		l.message(b[:n])
	}
}

// message takes one netlink message.
func (l *Log) message(b []byte) {
	if len(b) < headerSize {
		return
	}
	text := strings.TrimRight(string(b[headerSize:]), "\x00\n")
	if r, ok := parse(binary.NativeEndian.Uint16(b[4:]), text); ok {
		l.take(r)
	}
}
