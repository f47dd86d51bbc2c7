package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// listenUnix opens a unix socket at path, mode 0600, in place of one that is
// there. It is bound under another name and renamed, so nobody connects before
// its mode is right, and through a descriptor of its directory, so the path may
// be longer than a socket address.
func listenUnix(path string) (*listener, error) {
	dirName, name := filepath.Split(filepath.Clean(path))
	if err := os.MkdirAll(dirName, 0o700); err != nil {
		return nil, err
	}
	fd, err := unix.Open(dirName, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open its directory: %w", err)
	}
	dir := os.NewFile(uintptr(fd), dirName)
	unixListener, err := bindIn(dir, name)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	l := &listener{unix: unixListener}
	l.close = func() error {
		err := unixListener.Close()
		if gone := unix.Unlinkat(int(dir.Fd()), name, 0); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return errors.Join(err, dir.Close())
	}
	return l, nil
}

func bindIn(dir *os.File, name string) (*net.UnixListener, error) {
	fd := int(dir.Fd())
	if err := checkDir(fd); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	switch err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return nil, fmt.Errorf("%s exists and is no socket", name)
	}
	temp := "." + name
	if err := unix.Unlinkat(fd, temp, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove what an earlier start left: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", fd, temp), Net: "unix"})
	if err != nil {
		return nil, err
	}
	// The name it was bound to is gone once it is renamed, and it names a descriptor.
	l.SetUnlinkOnClose(false)
	err = unix.Fchmodat(fd, temp, 0o600, 0)
	if err == nil {
		err = unix.Renameat(fd, temp, fd, name)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), unix.Unlinkat(fd, temp, 0))
	}
	return l, nil
}

// checkDir refuses a directory in which others could replace the socket.
func checkDir(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return fmt.Errorf("its directory belongs to uid %d", st.Uid)
	}
	if st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("its directory has mode %04o: others may replace the socket", st.Mode&0o7777)
	}
	return nil
}

// checkPeer lets in the coordinator's own uid, and root.
func checkPeer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("ask who connected: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || credErr != nil {
		return fmt.Errorf("ask who connected: %w", errors.Join(err, credErr))
	}
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return fmt.Errorf("uid %d (pid %d) may not connect", cred.Uid, cred.Pid)
	}
	return nil
}
