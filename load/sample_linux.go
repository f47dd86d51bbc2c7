package load

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hayward-dev/hayward/internal/proc"
)

// Sample is the state of things at one moment.
type Sample struct {
	AtMS int64 `json:"at_ms"`
	// Live counts subagents that were forked and have not ended, Queued those that
	// wait for a place.
	Live   int `json:"live"`
	Queued int `json:"queued"`
	// Files, Threads and PSSKiB are of the coordinator.
	Files   int   `json:"files"`
	Threads int   `json:"threads"`
	PSSKiB  int64 `json:"pss_kib"`
}

// measure fills in what /proc shows of the coordinator.
func (s *Sample) measure(pid int) {
	if files, err := os.ReadDir(procPath(pid, "fd")); err == nil {
		s.Files = len(files)
	}
	if threads, err := os.ReadDir(procPath(pid, "task")); err == nil {
		s.Threads = len(threads)
	}
	if kib, err := proc.PSS(pid); err == nil {
		s.PSSKiB = kib
	}
}

// supervisorsMax bounds how many supervisors are measured at once.
const supervisorsMax = 16

// supervisorPSS is the memory of each of some supervisors that live now.
func supervisorPSS() []int64 {
	var all []int64
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || len(all) == supervisorsMax {
			continue
		}
		name, err := os.ReadFile(procPath(pid, "comm"))
		if err != nil || strings.TrimSpace(string(name)) != "hayward-child" {
			continue
		}
		if kib, err := proc.PSS(pid); err == nil && kib > 0 {
			all = append(all, kib)
		}
	}
	return all
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// leftOver lists the living processes that belong to the load: those that carry
// marker in their environment, and those that were recorded for an end.
func leftOver(marker string, ends []End) []string {
	var left []string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []string{"the process table could not be read: " + err.Error()}
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		p, ok := proc.Read(pid)
		if !ok || !p.Living() {
			continue
		}
		env, err := os.ReadFile(procPath(pid, "environ"))
		if err == nil && bytes.Contains(env, []byte(marker)) {
			left = append(left, describe(pid))
		}
	}
	for _, end := range ends {
		if p, ok := proc.Read(end.PID); ok && p.Start == end.StartTime && p.Living() {
			left = append(left, describe(end.PID))
		}
	}
	return left
}

func describe(pid int) string {
	line, err := os.ReadFile(procPath(pid, "cmdline"))
	if err != nil {
		return strconv.Itoa(pid)
	}
	return strconv.Itoa(pid) + " " + strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
}
