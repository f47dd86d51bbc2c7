//go:build !linux

package sandbox

// Quarantine has nothing to move: no sandbox is applied here.
func Quarantine([]string, string) ([]string, error) { return nil, nil }
