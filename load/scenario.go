package load

import (
	"fmt"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// Kind is what a subagent of the load does.
type Kind string

// The kinds.
const (
	Plain  Kind = "plain"  // prints a line, holds, ends with exit code 0
	Fail   Kind = "fail"   // ends with exit code 7
	Crash  Kind = "crash"  // ends itself with SIGSEGV
	Fork   Kind = "fork"   // leaves processes behind in sessions of their own
	Flood  Kind = "flood"  // prints as fast as it can
	Output Kind = "output" // prints many lines
)

// Kinds lists those that a share can be given for; the rest is [Plain].
var Kinds = []Kind{Fail, Crash, Fork, Flood, Output}

// What the loud kinds print.
const (
	floodBytes  = 8 << 20
	outputLines = 20_000
)

// Scenario is one load.
type Scenario struct {
	// Children is how many subagents are spawned, Concurrency how many of them may
	// be unread at once, and Clients how many processes spawn them.
	Children    int `json:"children"`
	Concurrency int `json:"concurrency"`
	Clients     int `json:"clients"`
	// HoldMS is how long each holds before it ends.
	HoldMS int64 `json:"hold_ms"`
	// Share is the percentage of each kind.
	Share map[Kind]int `json:"share_percent"`
	// CancelStorms is how often all clients cancel a prompt of theirs at once, each
	// several times, while they spawn more under it.
	CancelStorms int `json:"cancel_storms"`
	// KillCoordinator is how often the coordinator is ended by SIGKILL.
	KillCoordinator int `json:"kill_coordinator"`
	// Sandbox is the profile of the subagents.
	Sandbox string `json:"sandbox"`
	// Session begins the names of the clients' sessions; empty, they are new ones.
	Session string `json:"session,omitempty"`
}

// Check returns what is wrong with the scenario.
func (s Scenario) Check() error {
	var faults []string
	for name, n := range map[string]int{"children": s.Children, "concurrency": s.Concurrency, "clients": s.Clients} {
		if n < 1 {
			faults = append(faults, name+" must be at least 1")
		}
	}
	for name, n := range map[string]int{"cancel-storm": s.CancelStorms, "kill-coordinator": s.KillCoordinator} {
		if n < 0 {
			faults = append(faults, name+" must not be negative")
		}
	}
	if s.HoldMS < 0 {
		faults = append(faults, "hold must not be negative")
	}
	total := 0
	for kind, percent := range s.Share {
		if percent < 0 {
			faults = append(faults, fmt.Sprintf("the share of %s must not be negative", kind))
		}
		total += percent
	}
	if total > 100 {
		faults = append(faults, fmt.Sprintf("the shares add up to %d %%", total))
	}
	if len(faults) == 0 {
		return nil
	}
	return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "load: %s", strings.Join(faults, "; "))
}

// kind is what subagent n does: the shares are spread evenly over the numbers.
func (s Scenario) kind(n int) Kind {
	at := n * 37 % 100 // 37 and 100 have no common divisor
	for _, k := range Kinds {
		if at < s.Share[k] {
			return k
		}
		at -= s.Share[k]
	}
	return Plain
}

// ranVariable names the directory in which each subagent notes that it ran.
const ranVariable = "HAYWARD_LOAD_RAN"

// command is the argv of a kind. Each first notes its run, so that a second one
// would show.
func (s Scenario) command(k Kind) []string {
	script := `echo run >> "$` + ranVariable + `/$HAYWARD_SUBAGENT_ID"; `
	hold := fmt.Sprintf("sleep %g", float64(s.HoldMS)/1000)
	switch k {
	case Fail:
		script += "echo begun; " + hold + "; exit 7"
	case Crash:
		script += "echo begun; " + hold + "; kill -SEGV $$"
	case Fork:
		script += "setsid sleep 3600 & (sleep 3600 &); echo begun; " + hold
	case Flood:
		script += fmt.Sprintf("head -c %d /dev/zero; %s", floodBytes, hold)
	case Output:
		script += fmt.Sprintf("seq %d; %s", outputLines, hold)
	default:
		script += "echo begun; " + hold
	}
	return []string{"sh", "-c", script}
}

// verdict says what is wrong with how a subagent of kind k ended, or nothing.
func verdict(k Kind, cancelled bool, end End) string {
	got := fmt.Sprintf("%s, reason %q, exit code %s, signal %q, %d bytes", end.Status, end.Reason, code(end.ExitCode), end.Signal, end.Bytes)
	if end.Error != "" {
		got += ": " + end.Error
	}
	if cancelled && end.Status == events.StatusCancelled {
		return ""
	}
	want := events.StatusCompleted
	if k == Fail || k == Crash {
		want = events.StatusFailed
	}
	ok := end.Status == want
	switch k {
	case Fail:
		ok = ok && end.ExitCode != nil && *end.ExitCode == 7
	case Crash:
		ok = ok && end.Signal == "SIGSEGV"
	case Flood:
		ok = ok && end.Bytes == floodBytes
	case Output:
		ok = ok && end.Bytes == outputBytes()
	default:
		ok = ok && end.ExitCode != nil && (k == Fail || *end.ExitCode == 0)
	}
	if ok {
		return ""
	}
	return got
}

func code(c *int) string {
	if c == nil {
		return "none"
	}
	return fmt.Sprint(*c)
}

// outputBytes is the length of what seq prints.
func outputBytes() int64 {
	total, digits, first := int64(0), int64(1), 1
	for first <= outputLines {
		last := min(first*10-1, outputLines)
		total += int64(last-first+1) * (digits + 1)
		first, digits = first*10, digits+1
	}
	return total
}
