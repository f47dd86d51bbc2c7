//go:build !linux

package sandbox

func makeHooks(string) bool { return false }
