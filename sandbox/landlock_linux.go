package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// The rights that rules give, before they are cut to the ABI. MakeChar and
// MakeBlock are in none of them: a device made by mknod is the raw disk.
const (
	accessRead  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	accessWrite = accessRead | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRefer |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
		ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym
	accessDevice   = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate
	accessTerminal = accessDevice | ll.AccessFSIoctlDev
	accessPTYs     = accessTerminal | ll.AccessFSReadDir
)

// fsRights are the file-system rights of each ABI.
func fsRights(abi int) uint64 {
	switch {
	case abi >= 9:
		return 1<<17 - 1
	case abi >= 5:
		return 1<<16 - 1
	case abi >= 3:
		return 1<<15 - 1
	case abi == 2:
		return 1<<14 - 1
	}
	return 1<<13 - 1
}

// fileRights are the rights that can be given on a file.
const fileRights = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile |
	ll.AccessFSTruncate | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix

// access is one rule: rights below a path.
type access struct {
	path   string
	rights uint64
	// optional rules are left out where the path does not exist.
	optional bool
}

// ruleset is what a profile enforces through Landlock: one layer, strict for
// exactly that ABI. TCP rights are handled where the network is closed.
type ruleset struct {
	abi     int
	handled uint64
	net     uint64
	scoped  uint64
	rules   []access
}

// compileRules composes the ruleset for the roots.
func compileRules(abi int, r *roots, network events.Network) ruleset {
	rs := ruleset{abi: abi, handled: fsRights(abi)}
	if abi >= 6 {
		rs.scoped = ll.ScopeSignal | ll.ScopeAbstractUnixSocket
	}
	if abi >= 4 && network == events.NetworkNone {
		rs.net = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	add := func(t tree, rights uint64) {
		if !t.dir {
			rights &= fileRights
		}
		rs.rules = append(rs.rules, access{path: t.path, rights: rights})
	}
	if r.bus == "" {
		// Nobody said which socket to leave open, so none can be closed.
		rs.handled &^= ll.AccessFSResolveUnix
	} else {
		add(tree{path: r.bus, dir: true}, ll.AccessFSResolveUnix)
	}
	for _, s := range r.sockets {
		add(tree{path: s}, ll.AccessFSResolveUnix)
	}
	if r.caps.DefaultRead {
		add(tree{path: "/", dir: true}, accessRead)
	}
	for _, t := range r.readable {
		add(t, accessRead)
	}
	for _, w := range r.writable {
		rights := uint64(accessWrite)
		if slices.Contains(r.servers(), w.path) {
			rights |= ll.AccessFSResolveUnix
		}
		add(w, rights)
	}
	for _, k := range r.kept {
		add(tree{path: k.Source, dir: true}, accessWrite)
	}
	for _, d := range r.caps.Devices {
		rights := uint64(accessDevice)
		switch d.Path {
		case "/dev/tty", "/dev/ptmx":
			rights = accessTerminal
		case "/dev/pts":
			rights = accessPTYs
		}
		rs.rules = append(rs.rules, access{d.Path, rights, true})
	}
	return rs
}

// String is the ruleset for the plan's hash.
func (rs ruleset) String() string {
	lines := make([]string, 0, len(rs.rules))
	for _, r := range rs.rules {
		lines = append(lines, fmt.Sprintf("%#x %q", r.rights&rs.handled, r.path))
	}
	sort.Strings(lines)
	return fmt.Sprintf("landlock abi %d fs %#x net %#x scoped %#x\n%s\n", rs.abi, rs.handled, rs.net, rs.scoped, strings.Join(lines, "\n"))
}

// open creates the ruleset in the kernel. The second result are the flags for
// restrict_self. It never asks for best effort: that succeeds without Landlock.
func (rs ruleset) open() (*os.File, uint32, error) {
	config := landlock.Config{
		HandledAccessFS:  landlock.AccessFSSet(rs.handled),
		HandledAccessNet: landlock.AccessNetSet(rs.net),
		Scoped:           landlock.ScopedSet(rs.scoped),
	}
	if rs.abi >= 7 {
		// The supervisor restricts itself and then executes: without this flag the
		// kernel logs none of the denials that matter.
		config = config.EnableLoggingForSubprocesses()
	}
	var rules []landlock.Rule
	for _, r := range rs.rules {
		rights := r.rights & rs.handled
		if rights == 0 {
			continue
		}
		if r.optional {
			if _, err := os.Lstat(r.path); errors.Is(err, os.ErrNotExist) {
				continue
			}
		}
		rules = append(rules, landlock.PathAccess(landlock.AccessFSSet(rights), r.path))
	}
	fd, flags, err := config.NewRulesetFD(rules...)
	if err != nil {
		return nil, 0, fmt.Errorf("create the Landlock ruleset: %w", err)
	}
	if fd < 0 {
		return nil, 0, errors.New("create the Landlock ruleset: the kernel was asked for nothing")
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "landlock-ruleset"), flags, nil
}
