package sandbox

import (
	"slices"

	"github.com/hayward-dev/hayward/events"
)

// The gaps: what a sandbox is known not to cover, as they stand in a report.
// The first group holds for every workspace sandbox of this version, the second
// only where this system lacks something, the third only for best effort.
const (
	GapBindAliases  = "bind_aliases"               // a second mount or hard link of hidden files elsewhere
	GapProtected    = "protected_names_missing"    // protected names that do not exist, or are links, can be made
	GapNested       = "nested_repositories"        // hooks of repositories far down, or of very many, can be written
	GapMade         = "repositories_made_inside"   // what is made a repository, or a submodule, inside runs what it says once git outside looks into it
	GapDenyNew      = "deny_new_files"             // what is made later and would match can be read
	GapDenyReplace  = "deny_atomic_replace"        // a denied file that someone outside replaces can be read
	GapDenyHardLink = "deny_hardlink"              // a denied file has further names elsewhere
	GapDenyHistory  = "deny_in_git_history"        // what is denied may stand in the repository's history
	GapSocketsOpen  = "sockets_opened"             // the profile leaves host sockets within reach
	GapCredOpen     = "credentials_allowed"        // the profile leaves credentials readable
	GapSharedTemp   = "temporary_files_shared"     // subagents of one user reach one another's TMPDIR
	GapLaterSockets = "unix_sockets_created_later" // host sockets made or replaced after the start

	GapDeny         = "deny"          // what is denied can be read
	GapNetwork      = "network"       // the network is not closed
	GapProcessLimit = "process_limit" // nothing of the sandbox bounds the number of processes

	GapNamespaces   = "namespaces"         // other processes are visible and the tree can escape its end
	GapHidden       = "hidden_directories" // the coordinator's files are within reach
	GapSockets      = "unix_sockets"       // host sockets are within reach
	GapMetadata     = "metadata_writes"    // modes, owners and times outside can be changed
	GapLandlock     = "landlock"           // files outside can be written
	GapSignals      = "signals"            // processes outside can be signalled
	GapAbstract     = "abstract_sockets"   // abstract sockets of the host are within reach
	GapDeviceIoctls = "device_ioctls"      // devices outside terminals take ioctls
	GapRename       = "renames_refused"    // files cannot be moved between directories
	GapSeccomp      = "seccomp"            // no system call is refused
	GapMounts       = "mounts"             // mount operations failed, see the layer
	GapCapabilities = "capabilities"       // capabilities were kept
	GapNoNewPrivs   = "no_new_privs"       // programs may gain privileges
)

// gaps lists what a sandbox on s does not cover.
func gaps(s Support, r *roots, network events.Network) []string {
	out := append([]string{GapBindAliases}, r.gaps...)
	if s.LandlockABI < 9 || r.bus == "" {
		out = append(out, GapLaterSockets)
	}
	add := func(when bool, names ...string) {
		if when {
			out = append(out, names...)
		}
	}
	direct, mounts := s.Namespaces == NamespacesDirect, s.Namespaces != NamespacesNone && s.MountTrees
	add(s.Root && s.Namespaces != NamespacesUser && !(direct && s.PIDMax && mounts), GapProcessLimit)
	add(s.Namespaces == NamespacesNone, GapNamespaces)
	add(!mounts, GapHidden, GapSockets)
	add(len(r.sockets) > 0, GapSocketsOpen)
	add(len(r.caps.AllowCredentials) > 0, GapCredOpen)
	add(!mounts, GapDeny)
	add(!mounts || r.tempRoot == "" && !r.caps.PrivateTemp, GapSharedTemp)
	add(network != events.NetworkOpen && !s.Seccomp && (s.Namespaces == NamespacesNone || !s.NetworkNamespace), GapNetwork)
	add(!mounts || slices.Contains(r.outermost, "/"), GapMetadata)
	add(s.LandlockABI == 0, GapLandlock)
	add(s.LandlockABI < 6, GapAbstract)
	add(s.LandlockABI < 6 && s.Namespaces == NamespacesNone, GapSignals)
	add(s.LandlockABI < 5, GapDeviceIoctls)
	add(s.LandlockABI == 1, GapRename)
	add(!s.Seccomp, GapSeccomp)
	return out
}
