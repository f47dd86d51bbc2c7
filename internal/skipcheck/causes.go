package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
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
	{regexp.MustCompile(`needs a writable (memory|pids|freezer) cgroup`), func(g []string) bool { return !writableController(g[0]) }},
	{regexp.MustCompile(`needs an enforceable workspace profile`), func([]string) bool {
		return landlockABI() == 0 || (os.Geteuid() != 0 && !userNamespaces())
	}},
	{regexp.MustCompile(`needs a directory outside the shared temporary ones`), func([]string) bool {
		cwd, err := os.Getwd()
		return err == nil && inSharedTemp(cwd) && inSharedTemp(os.Getenv("HOME"))
	}},
	// A test finds this out by trying it outside of a sandbox; so it is believed.
	{regexp.MustCompile(`needs the (int80|x32) ABI`), func([]string) bool { return true }},
	// A long proof, which has to be asked for.
	{regexp.MustCompile(`needs the variable ([A-Z_]+)`), func(g []string) bool { return os.Getenv(g[0]) == "" }},
	{regexp.MustCompile(`needs the agent CLIs`), func([]string) bool { return os.Getenv("HAYWARD_AGENT_CLIS") == "" }},
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

// inSharedTemp reports whether dir is in a directory that every sandboxed child
// may write.
func inSharedTemp(dir string) bool {
	for _, shared := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if dir == shared || strings.HasPrefix(dir, shared+"/") {
			return true
		}
	}
	return dir == ""
}

// number converts digits that an expression has matched.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 1 << 30 // more digits than any version has
	}
	return n
}
