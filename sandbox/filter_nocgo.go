//go:build !linux || !cgo

package sandbox

// haveFilter is false: without cgo there is neither filter nor constructor.
const haveFilter = false
