//go:build !linux

package metrics

import "time"

// Process adds nothing on this system.
func (r *Registry) Process(time.Time) {}
