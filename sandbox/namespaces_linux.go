package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/sandbox/internal/layout"
)

// cloneFlags are the namespaces of every enforced profile.
const cloneFlags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC

// userNamespace returns the attributes of a child that gets its namespaces
// through a user namespace in which uid and gid stay what they are. The
// capabilities are ambient because exec as an ordinary uid takes all others;
// the constructor drops them.
func userNamespace() *syscall.SysProcAttr {
	uid, gid := os.Geteuid(), os.Getegid()
	return &syscall.SysProcAttr{
		Cloneflags:  cloneFlags | unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN},
	}
}

// SysProcAttr returns the attributes to start a child with: a session of its
// own and the plan's namespaces. The caller may add to it.
func (p *Plan) SysProcAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	switch p.namespace {
	case NamespacesDirect:
		attr.Cloneflags = cloneFlags
	case NamespacesUser:
		attr = userNamespace()
	}
	if p.body.Flags&layout.FlagNetNS != 0 {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.Setsid = true
	return attr
}

// ownNamespaces returns the inodes of this process's namespaces.
func ownNamespaces() (layout.Inodes, error) {
	var in layout.Inodes
	for _, ns := range []struct {
		name string
		ino  *uint64
	}{{"user", &in.User}, {"pid", &in.PID}, {"mnt", &in.Mount}, {"ipc", &in.IPC}, {"net", &in.Net}} {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+ns.name, &st); err != nil {
			if ns.name == "net" && errors.Is(err, unix.ENOENT) {
				continue // the kernel has none, so no plan asks for one
			}
			return in, fmt.Errorf("identify the %s namespace: %w", ns.name, err)
		}
		*ns.ino = st.Ino
	}
	return in, nil
}
