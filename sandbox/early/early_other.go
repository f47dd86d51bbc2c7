//go:build !linux || !cgo

package early

// Confined is false: there is no constructor in this build.
func Confined() bool { return false }

// PlanEnforced is false: there is no constructor in this build.
func PlanEnforced() bool { return false }

// TimerSlack is 0: nothing changed it.
func TimerSlack() uint64 { return 0 }
