package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/internal/memfd"
	"github.com/hayward-dev/hayward/sandbox/internal/layout"
)

// Compile makes the plan of r for a system that supports s. It refuses what
// cannot be enforced; see the package's contract for best effort.
func Compile(r Request, s Support) (*Plan, *events.Error) {
	profile, e := FindProfile(r.Profiles, r.Profile)
	if e != nil {
		return nil, e
	}
	if !s.Constructor && profile.Enforced() {
		return nil, unavailable(profile, noConstructor, r.BestEffort)
	}
	p := &Plan{requested: r.Profile, profile: profile, Network: events.NetworkOpen}
	if r.Within != nil {
		if !profile.Enforced() {
			return nil, wider("profile %s", profile.Name())
		}
		p.within = r.Within.PlanHash
		r.BestEffort = r.BestEffort && !r.Within.Required
	}
	if profile.Enforced() {
		e = p.compile(r, s)
	} else {
		if len(r.Deny) > 0 {
			return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "profile off cannot deny anything")
		}
		p.TempDir = r.TempDir
		p.Env = environment(r.TempDir, "")
		p.namespace = NamespacesNone
		p.body = layout.Plan{
			Flags:    layout.FlagSubreaper,
			Required: bits(handoff.StepFDs),
		}
		e = p.seal("", filterKey{}, nil)
	}
	if e != nil {
		return nil, e
	}
	return p, nil
}

// compile fills in p for an enforced profile.
func (p *Plan) compile(r Request, s Support) *events.Error {
	if r.CacheRoot != "" {
		if err := os.MkdirAll(r.CacheRoot, 0o700); err != nil {
			return pathError("create the cache root: %w", err)
		}
	}
	paths, e := resolveRoots(r, p.profile)
	if e != nil {
		return e
	}
	p.Network = network(paths.caps, paths.loopback)
	if lacks := s.missing(p.Network); len(lacks) > 0 && !r.BestEffort {
		return unavailable(p.profile, lacks, false)
	}
	p.paths = paths
	p.TempDir = paths.inside()
	p.Env = environment(p.TempDir, paths.usableCache())
	for _, w := range paths.writable {
		p.Writable = append(p.Writable, w.path)
	}
	p.namespace = s.Namespaces
	p.gaps = gaps(s, paths, p.Network)
	if e := p.layers(r, s); e != nil {
		return e
	}
	var err error
	if p.body.Processes, err = processLimit(s); err != nil {
		return pathError("%w", err)
	}
	var rules *ruleset
	if s.LandlockABI > 0 {
		rs := compileRules(s.LandlockABI, paths, p.Network)
		rules = &rs
		p.body.Flags |= layout.FlagLandlock
		// The one mount that does not exist yet when the rules are made.
		if p.body.Flags&layout.FlagMounts != 0 && !paths.caps.DefaultRead && opens(paths.readable, "/proc") {
			p.body.Flags |= layout.FlagProcRead
		}
	}
	if s.Seccomp {
		p.body.Flags |= layout.FlagSeccomp
	}
	return p.seal(fmt.Sprintf("base %s network %s\n", p.profile.Base(), p.Network), filterKey{
		Truncate:  s.LandlockABI < 3,
		NoNetwork: p.Network == events.NetworkNone,
		NoTracing: !paths.caps.Tracing,
	}, rules)
}

// opens reports whether a path lies in one of the trees.
func opens(trees []tree, path string) bool {
	return slices.ContainsFunc(trees, func(t tree) bool { return within(path, t.path) })
}

// layers sets the flags of the plan and its mount operations.
func (p *Plan) layers(r Request, s Support) *events.Error {
	b := &p.body
	b.Flags = layout.FlagEnforced | layout.FlagCaps | layout.FlagNoNewPrivs | layout.FlagNotDumpable
	b.Required = bits(handoff.StepFDs)
	if !r.BestEffort {
		b.Required = bits(handoff.StepFDs, handoff.StepNamespaces, handoff.StepMounts, handoff.StepCaps,
			handoff.StepNoNewPrivs, handoff.StepLandlock, handoff.StepSeccomp)
	}
	if s.Namespaces == NamespacesNone {
		b.Flags |= layout.FlagSubreaper
		if s.Root {
			b.Flags |= layout.FlagBounding // an ordinary user may not, and has nothing in it to gain
		}
		return nil
	}
	b.Flags |= layout.FlagPIDNS | layout.FlagMountNS | layout.FlagIPCNS | layout.FlagBounding
	if s.Namespaces == NamespacesUser {
		b.Flags |= layout.FlagUserNS
	}
	if p.Network != events.NetworkOpen && s.NetworkNamespace {
		b.Flags |= layout.FlagNetNS
		if p.Network == events.NetworkLoopback {
			b.Flags |= layout.FlagLoopback
		}
	}
	if !s.MountTrees {
		return nil
	}
	b.Flags |= layout.FlagMounts
	sockets, err := hostSockets(append(p.paths.servers(), p.paths.hidden...), p.paths.sockets)
	if err != nil {
		return pathError("%w", err)
	}
	if b.Ops, err = mountOps(p.paths, sockets, s.PIDMax); err != nil {
		return pathError("%w", err)
	}
	return nil
}

// seal opens the descriptors of p and computes its hash. On failure it closes
// what it opened.
func (p *Plan) seal(policy string, key filterKey, rules *ruleset) (e *events.Error) {
	defer func() {
		if e != nil {
			if err := p.Close(); err != nil {
				e = e.WithDetail("cleanup", err.Error())
			}
		}
	}()
	sum := sha256.New()
	fmt.Fprintf(sum, "profile %s\n%s", p.profile.Name(), policy)
	var err error
	if rules != nil {
		if p.RulesetFile, p.body.LandlockFlags, err = rules.open(); err != nil {
			return pathError("%w", err)
		}
		p.body.LandlockABI = uint32(rules.abi)
		p.rules = len(rules.rules)
		fmt.Fprint(sum, rules)
	}
	if p.body.Flags&layout.FlagSeccomp != 0 {
		if p.FilterFile, err = filterFile(key); err != nil {
			return pathError("%w", err)
		}
		// Read by position: the file is shared with other plans.
		info, err := p.FilterFile.Stat()
		if err != nil {
			return pathError("measure the seccomp filter: %w", err)
		}
		if _, err := io.Copy(sum, io.NewSectionReader(p.FilterFile, 0, info.Size())); err != nil {
			return pathError("read the seccomp filter: %w", err)
		}
	}
	p.body.Parent = layout.Inodes{}
	timeless, err := p.body.Encode()
	if err != nil {
		return pathError("%w", err)
	}
	sum.Write(timeless)
	p.Hash = hex.EncodeToString(sum.Sum(nil))

	if p.body.Parent, err = ownNamespaces(); err != nil {
		return pathError("%w", err)
	}
	encoded, err := p.body.Encode()
	if err != nil {
		return pathError("%w", err)
	}
	if p.PlanFile, err = memfd.Sealed("hayward-plan", func(f *os.File) error {
		_, err := f.Write(encoded)
		return err
	}); err != nil {
		return pathError("%w", err)
	}
	for _, f := range []**os.File{&p.RulesetFile, &p.FilterFile} {
		if *f == nil {
			if *f, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return pathError("%w", err)
			}
		}
	}
	return nil
}

// reservedPIDs are the numbers that the kernel hands out only once: after the
// first round, process ids start here.
const reservedPIDs = 300

// processLimit returns the RLIMIT_NPROC of the child, 0 for none. In a user
// namespace of its own the limit counts that namespace alone. Without one it
// counts every process of the uid on the machine, so it is set above those; it
// never binds uid 0.
func processLimit(s Support) (uint64, error) {
	switch {
	case s.Namespaces == NamespacesUser:
		return ProcessLimit, nil
	case s.Root || s.Namespaces == NamespacesDirect && s.PIDMax:
		return 0, nil
	}
	running, err := countProcesses(uint32(os.Geteuid()))
	if err != nil {
		return 0, fmt.Errorf("count the processes of this user: %w", err)
	}
	return running + ProcessLimit, nil
}

// countProcesses counts the threads of a uid.
func countProcesses(uid uint32) (uint64, error) {
	proc, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	var count uint64
	for _, entry := range proc {
		if name := entry.Name(); name[0] < '0' || name[0] > '9' {
			continue
		}
		var st unix.Stat_t
		path := "/proc/" + entry.Name() + "/task"
		if err := unix.Stat(path, &st); err != nil {
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
				continue // ended meanwhile
			}
			return 0, err
		}
		if st.Uid == uid && st.Nlink > 2 {
			count += uint64(st.Nlink) - 2
		}
	}
	return count, nil
}
