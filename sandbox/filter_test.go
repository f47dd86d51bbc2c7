//go:build linux && cgo && amd64

package sandbox

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// call is what a seccomp program looks at.
type call struct {
	arch uint32
	nr   uint32
	args [6]uint64
}

// data is struct seccomp_data.
func (c call) data() []byte {
	b := binary.LittleEndian.AppendUint32(nil, c.nr)
	b = binary.LittleEndian.AppendUint32(b, c.arch)
	b = binary.LittleEndian.AppendUint64(b, 0)
	for _, a := range c.args {
		b = binary.LittleEndian.AppendUint64(b, a)
	}
	return b
}

// evaluate runs a program of the instructions that libseccomp emits.
func evaluate(t *testing.T, program []byte, c call) uint32 {
	t.Helper()
	data := c.data()
	var a uint32
	for pc := 0; pc*8 < len(program); pc++ {
		ins := program[pc*8:]
		code, jt, jf := binary.LittleEndian.Uint16(ins), int(ins[2]), int(ins[3])
		k := binary.LittleEndian.Uint32(ins[4:])
		branch := func(yes bool) {
			if yes {
				pc += jt
			} else {
				pc += jf
			}
		}
		switch code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[k:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= k
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(k)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			branch(a == k)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			branch(a > k)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			branch(a >= k)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			branch(a&k != 0)
		case unix.BPF_RET | unix.BPF_K:
			return k
		default:
			t.Fatalf("instruction %d: code %#x", pc, code)
		}
	}
	t.Fatal("the program does not return")
	return 0
}

func filterBytes(t *testing.T, key filterKey) []byte {
	t.Helper()
	f, err := filterFile(key)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	require.NoError(t, err)
	require.NotEmpty(t, b)
	return b
}

func TestFilter(t *testing.T) {
	const (
		amd64 = unix.AUDIT_ARCH_X86_64
		i386  = unix.AUDIT_ARCH_I386
		arm64 = unix.AUDIT_ARCH_AARCH64
		x32   = 0x40000000
		junk  = 0xdead_0000_0000 // above what the kernel looks at
	)
	allow := uint32(unix.SECCOMP_RET_ALLOW)
	refuse := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	args := func(a ...uint64) (out [6]uint64) { copy(out[:], a); return out }
	program := filterBytes(t, filterKey{})
	cases := []struct {
		name string
		call call
		want uint32
	}{
		{"read", call{amd64, unix.SYS_READ, args()}, allow},
		{"ptrace of one's own", call{amd64, unix.SYS_PTRACE, args()}, allow},
		{"i386 getpid", call{i386, 20, args()}, refuse(unix.ENOSYS)},
		{"i386 socketcall", call{i386, 102, args(1)}, refuse(unix.ENOSYS)},
		{"arm64", call{arm64, 1, args()}, refuse(unix.ENOSYS)},
		{"x32 read", call{amd64, x32 | unix.SYS_READ, args()}, refuse(unix.ENOSYS)},
		{"x32 ptrace", call{amd64, x32 | 521, args()}, refuse(unix.ENOSYS)},
		{"TIOCSTI", call{amd64, unix.SYS_IOCTL, args(0, unix.TIOCSTI)}, refuse(unix.EPERM)},
		{"TIOCSTI with junk", call{amd64, unix.SYS_IOCTL, args(0, junk|unix.TIOCSTI)}, refuse(unix.EPERM)},
		{"TIOCLINUX", call{amd64, unix.SYS_IOCTL, args(0, unix.TIOCLINUX)}, refuse(unix.EPERM)},
		{"TIOCGWINSZ", call{amd64, unix.SYS_IOCTL, args(0, unix.TIOCGWINSZ)}, allow},
		{"prlimit of itself", call{amd64, unix.SYS_PRLIMIT64, args(0, 7)}, allow},
		{"prlimit of another", call{amd64, unix.SYS_PRLIMIT64, args(1, 7)}, refuse(unix.EPERM)},
		{"prlimit of -1", call{amd64, unix.SYS_PRLIMIT64, args(^uint64(0), 7)}, refuse(unix.EPERM)},
		{"NETLINK_ROUTE", call{amd64, unix.SYS_SOCKET, args(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)}, allow},
		{"NETLINK_NETFILTER", call{amd64, unix.SYS_SOCKET, args(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)}, refuse(unix.EAFNOSUPPORT)},
		{"a family with junk", call{amd64, unix.SYS_SOCKET, args(junk|unix.AF_PACKET, unix.SOCK_RAW)}, refuse(unix.EAFNOSUPPORT)},
		{"set-user-ID", call{amd64, unix.SYS_FCHMODAT, args(0, 0, 0o4755)}, refuse(unix.EPERM)},
		{"set-user-ID through fchmodat2", call{amd64, unix.SYS_FCHMODAT2, args(0, 0, 0o4755)}, refuse(unix.EPERM)},
		{"set-group-ID of a directory", call{amd64, unix.SYS_FCHMODAT, args(0, 0, 0o2755)}, allow},
		{"truncate", call{amd64, unix.SYS_TRUNCATE, args()}, allow},
	}
	for family := range uint64(64) {
		want := refuse(unix.EAFNOSUPPORT)
		switch family {
		case unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
			want = allow
		}
		for _, nr := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
			cases = append(cases, struct {
				name string
				call call
				want uint32
			}{"socket family", call{amd64, nr, args(family)}, want})
		}
	}
	for _, c := range cases {
		require.Equalf(t, c.want, evaluate(t, program, c.call), "%s %+v", c.name, c.call)
	}
	old := filterBytes(t, filterKey{Truncate: true})
	require.Equal(t, refuse(unix.EPERM), evaluate(t, old, call{amd64, unix.SYS_TRUNCATE, args()}))
}

// TestFilterIsDeterministic holds a fresh build against the cached one: the
// plan's hash covers the program.
func TestFilterIsDeterministic(t *testing.T) {
	cached := filterBytes(t, filterKey{})
	f, err := buildFilter(filterKey{})
	require.NoError(t, err)
	defer f.Close()
	fresh, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	require.NoError(t, err)
	require.Equal(t, cached, fresh)
}
