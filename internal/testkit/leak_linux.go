package testkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/proc"
)

// LeakCheck runs the tests of a package and exits; call it from TestMain. After
// tests that passed, no goroutine, no process and no descriptor may be left. The
// test process is a child subreaper, so that a process that left its parent is
// found as well.
func LeakCheck(m *testing.M, options ...goleak.Option) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintf(os.Stderr, "leak check: become child subreaper: %v\n", err)
		os.Exit(1)
	}
	before, err := openFiles()
	if err != nil {
		fmt.Fprintf(os.Stderr, "leak check: %v\n", err)
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 {
		if err := leaks(before, options); err != nil {
			fmt.Fprintf(os.Stderr, "leak check: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leakPatience is how long things may take to go away after the last test.
const leakPatience = 5 * time.Second

func leaks(before map[string]string, options []goleak.Option) error {
	err := goleak.Find(options...)
	return errors.Join(err, eventually(Processes), eventually(func() error {
		now, err := openFiles()
		if err != nil {
			return err
		}
		var left []string
		for fd, target := range now {
			if before[fd] != target {
				left = append(left, fd+" -> "+target)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("descriptors left open: %s", strings.Join(left, ", "))
		}
		return nil
	}))
}

// eventually asks until there is nothing to complain of.
func eventually(complaint func() error) error {
	for end := time.Now().Add(leakPatience); ; {
		err := complaint()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Processes returns an error that names the living descendants of the test
// process, nil when there are none. Zombies do not count.
func Processes() error {
	living, err := proc.Descendants(os.Getpid())
	if err != nil {
		return err
	}
	var left []string
	for _, p := range living {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if err != nil {
			continue // gone meanwhile
		}
		left = append(left, fmt.Sprintf("%d (%s)", p.PID, strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")))
	}
	if len(left) > 0 {
		return fmt.Errorf("processes left: %s", strings.Join(left, ", "))
	}
	return nil
}

// openFiles returns what each descriptor of this process is, except what is
// opened once and kept: by the Go runtime for itself, and by package sandbox for
// all plans with the same filter.
func openFiles() (map[string]string, error) {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list descriptors: %w", err)
	}
	files := make(map[string]string, len(entries))
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // the directory's own
		}
		switch {
		case target == "anon_inode:[eventpoll]", target == "anon_inode:[eventfd]":
		case strings.HasPrefix(target, "/sys/fs/cgroup/"), strings.HasPrefix(target, "/memfd:hayward-filter"):
		default:
			files[e.Name()] = target
		}
	}
	return files, nil
}
