//go:build !linux

package sandbox

import (
	"syscall"

	"github.com/hayward-dev/hayward/events"
)

// Compile refuses every enforced profile, and off as well: what starts children
// here does not exist outside of Linux.
func Compile(r Request, _ Support) (*Plan, *events.Error) {
	profile, e := ParseProfile(r.Profile)
	if e != nil {
		return nil, e
	}
	if !profile.Enforced() {
		return nil, events.Errorf(events.CodeUnsupported, events.LayerSandbox, "subagents run on Linux only")
	}
	return nil, unavailable(profile, noConstructor, r.BestEffort)
}

// SysProcAttr returns nothing to add: no plan exists on this system.
func (p *Plan) SysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
