//go:build !linux

package sandbox

import "runtime"

// Probe finds nothing: this system has none of the layers.
func Probe() Support {
	reason := "not on " + runtime.GOOS
	return Support{Namespaces: NamespacesNone, NamespacesReason: reason, LandlockReason: reason}
}
