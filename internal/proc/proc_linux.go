// Package proc reads the process table of /proc and signals exactly the
// processes that were read.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process is one line of the process table. PID and Start name it for ever: a
// pid alone may be given to another process.
type Process struct {
	PID    int
	Parent int
	// Name is that of the program, or what the process calls itself: at most 15
	// bytes of anything.
	Name string
	// State is the letter of the kernel: R, S, D, T, Z and others.
	State byte
	// Start is the start time in clock ticks since boot.
	Start uint64
}

// Living reports whether the process still runs code: a zombie does not.
func (p Process) Living() bool { return p.State != 'Z' && p.State != 'X' }

// Read returns the process with that pid; false when there is none, or none
// that may be seen.
func Read(pid int) (Process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false
	}
	// The name in parentheses may hold anything; what follows the last one is
	// plain: state, parent, ..., start time as the 20th.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	fields := bytes.Fields(b[end+1:])
	if open < 0 || end < open || len(fields) < 20 {
		return Process{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return Process{}, false
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return Process{}, false
	}
	return Process{PID: pid, Parent: parent, Name: string(b[open+1 : end]), State: fields[0][0], Start: start}, true
}

// Descendants lists the living processes below root. A zombie is not listed,
// but its children are.
func Descendants(root int) ([]Process, error) {
	pids, err := List()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]Process)
	for _, pid := range pids {
		if p, ok := Read(pid); ok {
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	var living []Process
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			queue = append(queue, p.PID)
			if p.Living() {
				living = append(living, p)
			}
		}
	}
	return living, nil
}

// Count returns the number of processes that /proc shows.
func Count() (int, error) {
	pids, err := List()
	return len(pids), err
}

// List returns the pids that /proc shows.
func List() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// PSS returns the proportional set size of a process in KiB: its own memory, and
// its part of what it shares. Reading it stops the process for a moment.
func PSS(pid int) (int64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			if kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64); err == nil {
				return kib, nil
			}
		}
	}
	return 0, fmt.Errorf("read the memory of process %d: it has none", pid)
}

// Signal sends sig to exactly this process. One that is gone is no error.
func (p Process) Signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", p.PID, err)
	}
	defer unix.Close(fd)
	// The descriptor holds whatever has the pid now; from here on it cannot change.
	if now, ok := Read(p.PID); !ok || now.Start != p.Start {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", unix.SignalName(sig), p.PID, err)
	}
	return nil
}
