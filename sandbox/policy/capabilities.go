package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// Place is what the meaning of a profile depends on. Paths are absolute; empty
// ones are left out.
type Place struct {
	// Workspace, TempDir and CacheRoot are what a child works in, Home is the
	// user's.
	Workspace, Home, TempDir, CacheRoot string
	// AddDirs are opened for writing whatever the profile says.
	AddDirs []string
	// Top are the directories directly below /, Path those in which commands are
	// looked up.
	Top, Path []string
}

// Entry is a path or pattern of a capability set and where it comes from.
type Entry struct {
	// Path is absolute, or a pattern if Pattern is true. A relative pattern is
	// below Below, whose own characters stand for themselves.
	Path    string
	Pattern bool
	Below   string
	// Origin names the profile, file or flag that the entry is from.
	Origin string
	// Optional entries may be missing without a word: they are there on some
	// systems only. Missing others are reported.
	Optional bool
}

// String is the entry as one path or pattern.
func (e Entry) String() string {
	if e.Below == "" {
		return e.Path
	}
	return strings.TrimSuffix(e.Below, "/") + "/" + e.Path
}

// Capabilities is a resolved profile: what a child may do.
type Capabilities struct {
	// DefaultRead opens everything for reading that Deny does not close.
	DefaultRead bool
	// ReadOnly is readable beside it, ReadWrite readable and writable.
	ReadOnly, ReadWrite []Entry
	// Deny can be neither read, nor written, nor renamed.
	Deny []Entry
	// Devices are the device files and directories that can be used.
	Devices []Entry
	// RestrictNetwork closes the network.
	RestrictNetwork bool
	// NetworkOrigin says where that is from.
	NetworkOrigin string

	// PrivateTemp gives the child its own TMPDIR in the place of the host's
	// temporary directories.
	PrivateTemp bool
	// Protect keeps what others run later out of the reach of writes: hooks, the
	// configuration of tools in the workspace.
	Protect bool
	// ClosedWorkspace keeps the workspace from being written even where a
	// directory above it may be.
	ClosedWorkspace bool
	// Tracing leaves ptrace and the like to a child for its own processes.
	Tracing bool

	// AllowCredentials, AllowWrite and Sockets are the exceptions of a custom
	// profile to the groups of the same purpose.
	AllowCredentials, AllowWrite, Sockets []Entry
}

// AddDir is the origin of [Place.AddDirs].
const AddDir = "--add-dir"

// SharedTemp are the host's directories for temporary files.
var SharedTemp = []string{"/tmp", "/var/tmp", "/dev/shm"}

// devices are what every profile leaves to a child.
var devices = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
	"/dev/tty", "/dev/ptmx", "/dev/pts",
}

// strictRead is what strict leaves readable beside the workspace.
var strictRead = []string{
	"/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc", "/dev", "/proc", "/sys", "/run", "/var",
}

// devboxClosed are the directories below / that devbox does not open.
var devboxClosed = []string{"/proc", "/sys", "/dev", "/data", "/boot"}

// Resolve gives the capability set of p at a place. Profile off has none.
func Resolve(p Profile, at Place) Capabilities {
	base := p.Base()
	origin := "profile " + base
	entries := func(optional bool, paths ...string) []Entry {
		var out []Entry
		for _, path := range paths {
			if path != "" {
				out = append(out, Entry{Path: path, Origin: origin, Optional: optional})
			}
		}
		return out
	}
	c := Capabilities{DefaultRead: true, Tracing: true, NetworkOrigin: origin}
	switch base {
	case Workspace:
		c.ReadWrite = slices.Concat(entries(false, at.Workspace, at.TempDir, at.CacheRoot), entries(true, SharedTemp...))
		c.Protect = true
	case Devbox:
		c.ReadWrite = slices.Concat(entries(false, at.Workspace, at.TempDir, at.CacheRoot), entries(true, SharedTemp...))
		for _, dir := range at.Top {
			if !slices.Contains(devboxClosed, dir) {
				c.ReadWrite = append(c.ReadWrite, entries(true, dir)...)
			}
		}
	case ReadOnly:
		c.ReadWrite = slices.Concat(entries(false, at.TempDir), entries(true, SharedTemp...))
		c.RestrictNetwork, c.Protect, c.ClosedWorkspace = true, true, true
	case Strict:
		c.DefaultRead, c.Tracing = false, false
		c.ReadOnly = entries(true, strictRead...)
		c.ReadWrite = entries(false, at.Workspace, at.TempDir, at.CacheRoot)
		c.RestrictNetwork, c.Protect, c.PrivateTemp = true, true, true
		for _, dir := range at.Path {
			if opensNoMore(dir, at.Home) {
				c.ReadOnly = append(c.ReadOnly, Entry{Path: dir, Origin: "PATH", Optional: true})
			}
		}
	default:
		return Capabilities{DefaultRead: true, Tracing: true, NetworkOrigin: origin}
	}
	c.Devices = entries(true, devices...)
	for _, dir := range at.AddDirs {
		c.ReadWrite = append(c.ReadWrite, Entry{Path: dir, Origin: AddDir})
	}
	if p.custom != nil {
		p.custom.extend(&c, at)
	}
	return c
}

// opensNoMore reports whether a directory of PATH can be opened without opening
// the home directory with it.
func opensNoMore(dir, home string) bool {
	return filepath.IsAbs(dir) && dir != "/" && (home == "" || !Within(home, dir))
}

// Within reports whether path is dir or lies below it.
func Within(path, dir string) bool {
	return path == dir || dir == "/" || len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/'
}
