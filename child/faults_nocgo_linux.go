//go:build !cgo

package child

// guardFaults needs cgo. Without it there is no constructor either, and Main
// refuses to start anything.
func guardFaults() {}

// defaultLibrarySignals needs cgo as well.
func defaultLibrarySignals() {}
