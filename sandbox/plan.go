package sandbox

import (
	"errors"
	"os"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/internal/layout"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// ProcessLimit is how many processes and threads a child's tree may always
// have at once.
const ProcessLimit = 512

// Bind is a file or directory of ours that is shown inside.
type Bind struct {
	// Source is what is shown, which may lie in a hidden directory.
	Source string
	// Target is where it is seen: what exists below the request's TempDir and is of
	// the same kind.
	Target string
}

// Request is what a child is to be confined to. All paths are absolute.
type Request struct {
	// Profile is a profile's name, one of Profiles or a built-in one; see
	// [FindProfile].
	Profile  string
	Profiles Profiles
	// BestEffort goes on without the layers that this system does not have.
	BestEffort bool
	// Workspace is made writable. It must not be /, Home, a parent of Home or a
	// parent of a hidden directory unless AddDirs names it too.
	Workspace string
	// Cwd is the command's working directory.
	Cwd string
	// Home is the user's home directory; empty if there is none.
	Home string
	// TempDir is the child's own TMPDIR. It exists.
	TempDir string
	// TempRoot is the directory that holds TempDir and those of others: a child
	// reaches nothing else in it. Empty if there is none.
	TempRoot string
	// CacheRoot is the one cache directory that children write. It is created if
	// it does not exist; empty means none.
	CacheRoot string
	// ChildBinary is the program that will be started.
	ChildBinary string
	// AddDirs are further directories to make writable.
	AddDirs []string
	// Deny are further paths and patterns to deny, as in a profile.
	Deny []string
	// Path is the command's PATH: a profile that does not open everything for
	// reading opens its directories.
	Path string
	// Loopback gives a profile that closes the network a loopback device of its
	// own.
	Loopback bool
	// Protected are paths of ours that no child may write, where they exist.
	Protected []string
	// MakeHooks makes the directory of hooks of a repository that has none, so that
	// it can be closed.
	MakeHooks bool
	// Hidden are directories that exist and must be out of reach from inside.
	Hidden []string
	// Own is a directory in a hidden one that is the child's own: nothing else of
	// the hidden one is within reach. It holds a repository of its own, in which the
	// child may write what git runs. Empty if there is none.
	Own string
	// Closed are directories that stay read-only wherever they lie, Original one
	// that does unless something writable lies in it, and Readable are readable
	// under every profile.
	Closed   []string
	Original string
	Readable []string
	// Bus is the directory of the children's socket. On kernels that mediate
	// connections to sockets by path (Landlock ABI 9) everything else is closed;
	// empty leaves such connections to the mounts alone.
	Bus string
	// Within are the bounds of the sandbox of whoever asks for this child: it gets
	// no more than both leave, see [Plan.Bounds]. Nil is none.
	Within *policy.Bounds
	// Inputs are files to show read-only below TempDir.
	Inputs []Bind
	// Kept are directories to show, and to open for writing, below TempDir. What is
	// written there stays when TempDir goes.
	Kept []Bind
}

// Plan is a compiled request. Its owner closes it after the last start.
type Plan struct {
	// PlanFile, RulesetFile and FilterFile are the child's descriptors
	// FDPlan, FDRuleset and FDFilter. Those that are not needed are /dev/null.
	PlanFile, RulesetFile, FilterFile *os.File
	// Env is what the command's environment gets in addition.
	Env map[string]string
	// Hash is the SHA-256, in hex, over everything that the plan enforces. The
	// identity of the parent's namespaces is no part of it.
	Hash string
	// Network is what the child may reach.
	Network events.Network
	// Writable are the roots opened for writing, canonical and sorted.
	Writable []string

	// TempDir is TMPDIR as the child sees it.
	TempDir string

	requested string
	profile   Profile
	// within is the plan hash of the spawner's sandbox, empty for none.
	within    string
	body      layout.Plan
	namespace Namespaces
	gaps      []string
	rules     int
	// paths are the resolved ones, nil under off.
	paths *roots
}

// Profile returns the profile that the plan enforces.
func (p *Plan) Profile() Profile { return p.profile }

// Close releases the descriptors. It may be called more than once.
func (p *Plan) Close() error {
	var errs []error
	for _, f := range []**os.File{&p.PlanFile, &p.RulesetFile, &p.FilterFile} {
		if *f != nil {
			errs = append(errs, (*f).Close())
			*f = nil
		}
	}
	return errors.Join(errs...)
}

// Inside returns the path at which the child sees a file of its TempDir.
func (p *Plan) Inside(path string) string {
	if p.paths == nil || !within(path, p.paths.temp) {
		return path
	}
	return p.TempDir + strings.TrimPrefix(path, p.paths.temp)
}

// environment returns the variables that point tools at the writable places.
func environment(temp, cache string) map[string]string {
	env := make(map[string]string)
	if temp != "" {
		env["TMPDIR"] = temp
	}
	if cache != "" {
		env["XDG_CACHE_HOME"] = cache
		env["GOCACHE"] = cache + "/go-build"
		env["GOMODCACHE"] = cache + "/go-mod"
		env["npm_config_cache"] = cache + "/npm"
		env["PIP_CACHE_DIR"] = cache + "/pip"
		env["UV_CACHE_DIR"] = cache + "/uv"
		env["CARGO_HOME"] = cache + "/cargo"
	}
	return env
}
