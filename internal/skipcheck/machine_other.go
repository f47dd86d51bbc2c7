//go:build !linux

package main

// Elsewhere there is nothing of this.

func kernel() (major, minor int)     { return 0, 0 }
func landlockABI() int               { return 0 }
func userNamespaces() bool           { return false }
func writableController(string) bool { return false }

func writableCgroup() bool { return false }
func mayMount() bool       { return false }
