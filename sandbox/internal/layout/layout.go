// Package layout is the binary sandbox plan: what the parent compiles into a
// sealed memfd and the C constructor of sandbox/early reads. All numbers are
// little endian; the constants are repeated in early.h, and sandbox/early does
// not compile when the two differ.
//
//	header | operations | strings, each ended by a zero byte
package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// The identity of the format. A plan of another version is refused.
const (
	Magic   = "HAYWPLAN"
	Version = 2
)

// Sizes of the parts and the bounds that the constructor checks.
const (
	HeaderSize = 88
	OpSize     = 16
	MaxSize    = 4 << 20
	MaxOps     = 8192
)

// The flags say which steps a plan asks for.
const (
	FlagEnforced    = 1 << 0  // the profile is not off
	FlagUserNS      = 1 << 1  // an own user namespace was asked for
	FlagPIDNS       = 1 << 2  // an own PID namespace was asked for
	FlagMountNS     = 1 << 3  // an own mount namespace was asked for
	FlagIPCNS       = 1 << 4  // an own IPC namespace was asked for
	FlagMounts      = 1 << 5  // run the operations
	FlagCaps        = 1 << 6  // drop every capability
	FlagBounding    = 1 << 7  // drop the bounding set and lock the securebits
	FlagNoNewPrivs  = 1 << 8  // set no_new_privs
	FlagLandlock    = 1 << 9  // enforce the ruleset
	FlagSeccomp     = 1 << 10 // load the filter
	FlagNotDumpable = 1 << 11 // the supervisor cannot be traced
	FlagSubreaper   = 1 << 12 // the supervisor adopts orphans
	FlagNetNS       = 1 << 13 // an own network namespace was asked for
	FlagLoopback    = 1 << 14 // bring its loopback device up
	FlagProcRead    = 1 << 15 // let Landlock open the own /proc for reading
)

// FlagNamespaces are the flags of StepNamespaces.
const FlagNamespaces = FlagUserNS | FlagPIDNS | FlagMountNS | FlagIPCNS | FlagNetNS

// OpKind is what a mount operation does.
type OpKind uint16

// The mount operations. Each is verified after all of them were made.
const (
	OpPrivate    OpKind = 1 // stop all propagation
	OpHold       OpKind = 2 // take a copy of the tree at Target, kept for OpPlace
	OpReadOnly   OpKind = 3 // make the tree at Target read-only and nosuid
	OpPlace      OpKind = 4 // put the copy of operation number Value back at Target
	OpPin        OpKind = 5 // bind the directory Target onto itself
	OpBindFile   OpKind = 6 // bind the file that operation number Value held onto Target, read-only
	OpMaskDir    OpKind = 7 // cover Target by an empty directory, mode 000
	OpMaskSocket OpKind = 8 // cover the socket Target by a device that cannot be opened
	OpProc       OpKind = 9 // a /proc of the own PID namespace at Target
	OpPIDMax     OpKind = 10
	OpOnly       OpKind = 11 // cover Target but for the directory Source below it
	OpClose      OpKind = 12 // make the tree at Target read-only
	OpMaskFile   OpKind = 13 // cover the file Target by a device that cannot be opened
)

var opNames = map[OpKind]string{
	OpPrivate: "make all mounts private below", OpHold: "copy the writable tree",
	OpReadOnly: "make read-only", OpPlace: "open for writing", OpPin: "pin",
	OpBindFile: "bind read-only", OpMaskDir: "hide", OpMaskSocket: "hide the socket",
	OpProc: "mount proc at", OpPIDMax: "bound the process ids at",
	OpOnly: "leave one directory of", OpClose: "close for writing", OpMaskFile: "deny",
}

// Op is one mount operation. Paths are absolute and hold no symbolic link.
type Op struct {
	Kind           OpKind
	Source, Target string
	Value          uint32
}

// String describes o for an error message.
func (o Op) String() string {
	name, ok := opNames[o.Kind]
	if !ok {
		name = fmt.Sprintf("operation kind %d on", uint16(o.Kind))
	}
	if o.Kind == OpPIDMax {
		return fmt.Sprintf("%s %d", name, o.Value)
	}
	return name + " " + o.Target
}

// Inodes are those of the parent's own namespaces; the child's must differ.
type Inodes struct{ User, PID, Mount, IPC, Net uint64 }

// Plan is the decoded form.
type Plan struct {
	Flags uint32
	// Required has bit 1<<step set for each step whose failure ends the child.
	Required uint32
	// LandlockABI is reported, LandlockFlags are passed to the kernel.
	LandlockABI, LandlockFlags uint32
	// Processes bounds RLIMIT_NPROC; 0 leaves it.
	Processes uint64
	Parent    Inodes
	Ops       []Op
}

// Encode returns the wire form of p, or an error if p cannot be expressed in it.
func (p Plan) Encode() ([]byte, error) {
	if len(p.Ops) > MaxOps {
		return nil, fmt.Errorf("encode the sandbox plan: %d mount operations are more than %d", len(p.Ops), MaxOps)
	}
	var table []byte
	base := HeaderSize + len(p.Ops)*OpSize
	var bad error
	intern := func(s string) uint32 {
		if s == "" {
			return 0
		}
		if strings.IndexByte(s, 0) >= 0 {
			bad = fmt.Errorf("encode the sandbox plan: the path %q holds a zero byte", s)
		}
		at := base + len(table)
		table = append(append(table, s...), 0)
		return uint32(at)
	}
	ops := make([]byte, 0, len(p.Ops)*OpSize)
	le := binary.LittleEndian
	for _, o := range p.Ops {
		ops = le.AppendUint16(ops, uint16(o.Kind))
		ops = le.AppendUint16(ops, 0)
		ops = le.AppendUint32(ops, intern(o.Source))
		ops = le.AppendUint32(ops, intern(o.Target))
		ops = le.AppendUint32(ops, o.Value)
	}
	if bad != nil {
		return nil, bad
	}
	// The last byte is always zero, so that no string runs over the end.
	table = append(table, 0)
	size := base + len(table)
	if size > MaxSize {
		return nil, errors.New("encode the sandbox plan: the paths are too long together")
	}
	b := make([]byte, 0, size)
	b = append(b, Magic...)
	for _, v := range []uint32{
		Version, uint32(size), p.Flags, p.Required,
		p.LandlockABI, p.LandlockFlags, uint32(len(p.Ops)), HeaderSize,
	} {
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint64{p.Processes, p.Parent.User, p.Parent.PID, p.Parent.Mount, p.Parent.IPC, p.Parent.Net} {
		b = le.AppendUint64(b, v)
	}
	return append(append(b, ops...), table...), nil
}
