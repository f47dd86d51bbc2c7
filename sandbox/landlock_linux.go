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

// access is one rule: rights below a path.
type access struct {
	path   string
	rights uint64
	// optional rules are left out where the path does not exist.
	optional bool
}

// ruleset is what workspace enforces through Landlock: one layer, strict for
// exactly that ABI. TCP rights are not handled, the network is open.
type ruleset struct {
	abi     int
	handled uint64
	scoped  uint64
	rules   []access
}

// workspaceRules composes the ruleset for the roots.
func workspaceRules(abi int, r *roots) ruleset {
	rs := ruleset{abi: abi, handled: fsRights(abi)}
	if abi >= 6 {
		rs.scoped = ll.ScopeSignal | ll.ScopeAbstractUnixSocket
	}
	write := uint64(accessWrite)
	if r.bus == "" {
		// Nobody said which socket to leave open, so none can be closed.
		rs.handled &^= ll.AccessFSResolveUnix
	} else {
		rs.rules = append(rs.rules, access{path: r.bus, rights: ll.AccessFSResolveUnix})
	}
	rs.rules = append(rs.rules, access{path: "/", rights: accessRead})
	for _, w := range r.writable {
		rights := write
		if slices.Contains(r.servers(), w) {
			rights |= ll.AccessFSResolveUnix
		}
		rs.rules = append(rs.rules, access{path: w, rights: rights})
	}
	for _, d := range []string{"null", "zero", "full", "random", "urandom"} {
		rs.rules = append(rs.rules, access{"/dev/" + d, accessDevice, true})
	}
	for _, d := range []string{"tty", "ptmx"} {
		rs.rules = append(rs.rules, access{"/dev/" + d, accessTerminal, true})
	}
	rs.rules = append(rs.rules, access{"/dev/pts", accessPTYs, true})
	return rs
}

// String is the ruleset for the plan's hash.
func (rs ruleset) String() string {
	lines := make([]string, 0, len(rs.rules))
	for _, r := range rs.rules {
		lines = append(lines, fmt.Sprintf("%#x %q", r.rights&rs.handled, r.path))
	}
	sort.Strings(lines)
	return fmt.Sprintf("landlock abi %d fs %#x net 0 scoped %#x\n%s\n", rs.abi, rs.handled, rs.scoped, strings.Join(lines, "\n"))
}

// open creates the ruleset in the kernel. The second result are the flags for
// restrict_self. It never asks for best effort: that succeeds without Landlock.
func (rs ruleset) open() (*os.File, uint32, error) {
	config := landlock.Config{
		HandledAccessFS: landlock.AccessFSSet(rs.handled),
		Scoped:          landlock.ScopedSet(rs.scoped),
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
