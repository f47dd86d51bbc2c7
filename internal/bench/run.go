package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// runItems is how many /bin/true a plan has, runJobs how many at once, and
	// runPairs how often each way is taken.
	runItems, runJobs = 500, 2
	runPairs          = 3
)

// runCase compares a plan with the tools that people use for it, each item in a
// sandbox of bubblewrap with the restrictions that bubblewrap can make: the same
// namespaces, the same writable directories, no capabilities. It has neither the
// rules of Landlock nor the filter of system calls, and keeps no records.
func runCase(s *setting) ([]Figure, error) {
	b, err := s.plain()
	if err != nil {
		return nil, err
	}
	plan := filepath.Join(s.dir, "true.toml")
	var items []string
	for i := range runItems {
		items = append(items, strconv.Quote(strconv.Itoa(i)))
	}
	text := fmt.Sprintf("name = \"true\"\njobs = %d\n\n[[subagent]]\nname = \"true\"\ncommand = [\"/bin/true\"]\ncwd = %q\nworkspace = %q\nfor_each = [%s]\n",
		runJobs, b.work, b.work, strings.Join(items, ", "))
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		return nil, err
	}
	hayward := b.command(nil, s.opts.program, "run", plan)
	bwrap := bubblewrap(b.work)
	numbers := []byte(strings.ReplaceAll(strings.Join(items, "\n"), `"`, ""))
	var all []Figure
	for _, other := range []struct {
		name string
		argv []string
	}{
		{"parallel", append([]string{"parallel", "--will-cite", "-j", strconv.Itoa(runJobs), "-n0"}, bwrap...)},
		{"xargs", append([]string{"xargs", "-P", strconv.Itoa(runJobs), "-I{}"}, bwrap...)},
	} {
		what, floor := "hayward run of 500 /bin/true, 2 at once", other.name+" of as many bwrap /bin/true"
		if missing := notInstalled(other.name, "bwrap"); missing != "" {
			all = append(all, Figure{What: what, Floor: floor, Unit: unitRatio, Missing: missing + " is not installed"})
			continue
		}
		f, err := takePairs(runPairs, what, floor, 0, hayward, b.command(numbers, other.argv...))
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// bubblewrap is what profile workspace asks for, as far as bubblewrap has it, as an
// ordinary user too.
func bubblewrap(work string) []string {
	argv := []string{"bwrap", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session", "--cap-drop", "ALL"}
	if os.Geteuid() != 0 {
		argv = append(argv, "--unshare-user")
	}
	argv = append(argv, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
	for _, dir := range []string{work, "/tmp", "/var/tmp"} {
		argv = append(argv, "--bind", dir, dir)
	}
	return append(argv, "/bin/true")
}

func notInstalled(programs ...string) string {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return p
		}
	}
	return ""
}

// command runs a program in the workspace, with stdin.
func (b *instance) command(stdin []byte, argv ...string) measure {
	return func() (time.Duration, error) {
		cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdin = b.work, b.environ(), bytes.NewReader(stdin)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(began)
		if err != nil {
			return took, fmt.Errorf("%s: %w: %.2000s", argv[0], err, out)
		}
		return took, nil
	}
}
