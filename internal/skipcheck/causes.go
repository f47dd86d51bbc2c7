package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
)

// A cause is something that a test may need and a machine may lack.
type cause struct {
	// words is what a skip says; its groups are handed to lacks.
	words *regexp.Regexp
	// lacks reports whether this machine, or who runs the tests, lacks it.
	lacks func(groups []string) bool
}

// causes is the list of what may be skipped.
var causes = []cause{
	{regexp.MustCompile(`needs root`), func([]string) bool { return os.Geteuid() != 0 }},
	{regexp.MustCompile(`needs an ordinary user`), func([]string) bool { return os.Geteuid() == 0 }},
	{regexp.MustCompile(`needs Linux`), func([]string) bool { return runtime.GOOS != "linux" }},
	{regexp.MustCompile(`needs kernel (\d+)\.(\d+)`), func(g []string) bool {
		major, minor := kernel()
		wantMajor, wantMinor := number(g[0]), number(g[1])
		return major < wantMajor || (major == wantMajor && minor < wantMinor)
	}},
	{regexp.MustCompile(`needs Landlock ABI (\d+)`), func(g []string) bool { return landlockABI() < number(g[0]) }},
	{regexp.MustCompile(`needs user namespaces`), func([]string) bool { return !userNamespaces() }},
	{regexp.MustCompile(`needs the right to mount`), func([]string) bool { return !mayMount() }},
	{regexp.MustCompile(`needs a writable cgroup v2`), func([]string) bool { return !writableCgroup() }},
	{regexp.MustCompile(`needs the program ([A-Za-z0-9_.+-]+)`), func(g []string) bool {
		_, err := exec.LookPath(g[0])
		return err != nil
	}},
}

// judge returns why a skip for the given reason is wrong, or nothing.
func judge(known []cause, reason string) string {
	if reason == "" {
		return "it gives no reason"
	}
	for _, c := range known {
		groups := c.words.FindStringSubmatch(reason)
		switch {
		case groups == nil:
		case c.lacks(groups[1:]):
			return ""
		default:
			return fmt.Sprintf("this machine has what it asks for (%s)", reason)
		}
	}
	return fmt.Sprintf("it names no known cause (%s)", reason)
}

// number converts digits that an expression has matched.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 1 << 30 // more digits than any version has
	}
	return n
}
