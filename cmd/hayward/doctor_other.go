//go:build !linux

package main

import (
	"os"
	"runtime"
)

func kernel() string { return runtime.GOOS }

func userNamespaceLimit() string { return "" }

// writable says why this process cannot write a directory, or nil.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

func cgroupKill() string { return "there are no cgroups" }

func (d *diagnosis) cgroups() {
	d.add("cgroups", verdictLess, "", "there are none on %s", runtime.GOOS)
}
