package sandbox

import (
	"fmt"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// Namespaces is how this process can give a child namespaces of its own.
type Namespaces string

// The ways to namespaces.
const (
	NamespacesDirect Namespaces = "direct" // this process has the privilege
	NamespacesUser   Namespaces = "user"   // through a user namespace
	NamespacesNone   Namespaces = "none"
)

// requiredABI is the Landlock ABI below which every profile is refused: before it
// abstract sockets, that of an X server among them, stay within reach.
const requiredABI = 6

// Support is what this system can enforce. It is a value, so that a test or a
// diagnosis can ask what would happen with less.
type Support struct {
	// Constructor is true when this build can make and apply a plan (Linux, cgo).
	Constructor bool
	// LandlockABI is the usable ABI, 0 for none; LandlockReason says why it is
	// less than the kernel's.
	LandlockABI    int
	LandlockReason string
	Seccomp        bool
	// Namespaces is how PID, mount and IPC namespaces are made, Reason why not.
	Namespaces       Namespaces
	NamespacesReason string
	// MountTrees is true when mounts can be copied and changed as whole trees.
	MountTrees bool
	// NetworkNamespace is true when a child can have a network of its own.
	NetworkNamespace bool
	// PIDMax is true when a PID namespace has a bound of its own (Linux 6.14).
	PIDMax bool
	// Root is true when the effective uid is 0.
	Root bool
}

// lack is one missing feature: what it is and how to get it.
type lack struct{ feature, fix string }

// missing lists what a profile with that network needs and s does not have.
func (s Support) missing(network events.Network) []lack {
	var out []lack
	if s.Namespaces == NamespacesNone {
		out = append(out, lack{
			"PID and mount namespaces: " + s.NamespacesReason,
			"allow unprivileged user namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone, " +
				"kernel.apparmor_restrict_unprivileged_userns) or run as root",
		})
	}
	if !s.MountTrees {
		out = append(out, lack{"mount_setattr", "use Linux 5.12 or newer"})
	}
	switch {
	case s.LandlockABI == 0:
		out = append(out, lack{"Landlock: " + s.LandlockReason, "use a kernel with CONFIG_SECURITY_LANDLOCK and landlock in its lsm= list"})
	case s.LandlockABI < requiredABI:
		feature := fmt.Sprintf("Landlock ABI %d (found %d)", requiredABI, s.LandlockABI)
		if s.LandlockReason != "" {
			feature += ": " + s.LandlockReason
		}
		out = append(out, lack{feature, "use Linux 6.12 or newer"})
	}
	if network == events.NetworkLoopback && !s.NetworkNamespace {
		out = append(out, lack{"network namespaces", "use a kernel with CONFIG_NET_NS, or a profile without a loopback device"})
	}
	if !s.Seccomp {
		out = append(out, lack{"seccomp filters", "use a kernel with CONFIG_SECCOMP_FILTER"})
	}
	return out
}

// unavailable is the refusal of p for want of features.
func unavailable(p Profile, lacks []lack, bestEffort bool) *events.Error {
	features, fixes := make([]string, len(lacks)), make([]string, len(lacks))
	for i, l := range lacks {
		features[i], fixes[i] = l.feature, l.fix
	}
	e := events.Errorf(events.CodeSandboxUnavailable, events.LayerSandbox,
		"sandbox profile %s cannot be enforced here: missing %s", p.Name(), strings.Join(features, "; ")).
		WithDetail("missing", strings.Join(features, "; "))
	fix := strings.Join(fixes, "; ")
	if bestEffort {
		return e.WithRemedy("%s; or --sandbox off", fix)
	}
	return e.WithRemedy("%s; or --sandbox-best-effort to go on with what can be enforced; or --sandbox off", fix)
}

// noConstructor is what a build without the constructor lacks.
var noConstructor = []lack{{
	"the sandbox constructor in this build",
	"build on Linux with cgo and libseccomp",
}}

// Lacks names what a profile with that network needs and s does not have.
func (s Support) Lacks(network events.Network) []string {
	if !s.Constructor {
		return []string{noConstructor[0].feature}
	}
	var out []string
	for _, l := range s.missing(network) {
		out = append(out, l.feature)
	}
	return out
}
