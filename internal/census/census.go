package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/proc"
)

// supervisorName is what the kernel calls a supervisor.
const supervisorName = "hayward-child"

// Count is what a census found. A zombie runs nothing and is not counted.
type Count struct {
	Looks int `json:"looks"`
	// Supervisors are all that were seen, in the order of their first sight.
	Supervisors []Supervisor `json:"supervisors"`
	// MostSupervisors and MostProcesses are the greatest numbers that were seen to
	// live at once: supervisors alone, and with what runs below them.
	MostSupervisors int `json:"most_supervisors"`
	MostProcesses   int `json:"most_processes"`
	// Left are the processes that lived at the last look.
	Left []string `json:"left"`
}

// Supervisor is one process of hayward-child.
type Supervisor struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	// Parent is the process that made it.
	Parent int `json:"parent"`
	// Processes are the names of those that were seen below it.
	Processes []string `json:"processes"`
}

// census keeps what was seen so far.
type census struct {
	bin      string // where the supervisors of the state directory are executed from
	binaries []os.FileInfo
	uid      int // of who owns the state directory
	self     int

	looks   int
	all     []*Supervisor
	members map[int]member       // what lives, by pid
	others  map[int]bool         // processes that are not of it and never will be
	listing map[int]proc.Process // of one look
	most    struct{ supervisors, processes int }
}

// member is a process of the census.
type member struct {
	proc.Process
	of         *Supervisor
	supervisor bool
}

func newCensus(state string) (*census, error) {
	var st unix.Stat_t
	if err := unix.Stat(state, &st); err != nil {
		return nil, fmt.Errorf("look at %s: %w", state, err)
	}
	return &census{
		bin: filepath.Join(state, "bin"), uid: int(st.Uid), self: os.Getpid(),
		members: make(map[int]member), others: make(map[int]bool),
	}, nil
}

// look takes one look at the process table.
func (c *census) look() error {
	pids, err := proc.List()
	if err != nil {
		return err
	}
	c.looks++
	c.listing = make(map[int]proc.Process, len(c.members)+16)
	present := make(map[int]bool, len(pids))
	for _, pid := range pids {
		present[pid] = true
		if c.others[pid] {
			continue
		}
		p, ok := proc.Read(pid)
		switch {
		case !ok || pid == c.self:
		case p.Living():
			c.listing[pid] = p
		default:
			c.others[pid] = true // until somebody reaps it
		}
	}
	for pid := range c.others {
		if !present[pid] {
			delete(c.others, pid)
		}
	}
	for pid, m := range c.members {
		if p, ok := c.listing[pid]; !ok || p.Start != m.Start {
			delete(c.members, pid)
		}
	}
	c.enter()
	supervisors := 0
	for _, m := range c.members {
		if m.supervisor {
			supervisors++
		}
	}
	c.most.supervisors = max(c.most.supervisors, supervisors)
	c.most.processes = max(c.most.processes, len(c.members))
	return nil
}

// enter takes new members in: supervisors first, then what runs below members, by
// generations. What a supervisor forks looks like it until it executes something.
func (c *census) enter() {
	var rest []proc.Process
	for _, p := range c.listing {
		if _, known := c.members[p.PID]; known {
			continue
		}
		_, below := c.members[p.Parent]
		if !below && c.supervises(p) {
			s := &Supervisor{PID: p.PID, Start: p.Start, Parent: p.Parent, Processes: []string{}}
			c.all = append(c.all, s)
			c.members[p.PID] = member{p, s, true}
		} else {
			rest = append(rest, p)
		}
	}
	for found := true; found; {
		found = false
		rest = slices.DeleteFunc(rest, func(p proc.Process) bool {
			above, ok := c.members[p.Parent]
			if ok {
				above.of.Processes = append(above.of.Processes, p.Name)
				c.members[p.PID] = member{p, above.of, false}
				found = true
			}
			return ok
		})
	}
	for _, p := range rest {
		// A process that is not of it is looked at again as long as it may still
		// become a supervisor by executing one.
		if c.settled(p) {
			c.others[p.PID] = true
		}
	}
}

// supervises reports whether p is a supervisor of the state directory: it executes
// one, and what made it does not. A supervisor forks before it executes the command.
func (c *census) supervises(p proc.Process) bool {
	if p.Name != supervisorName || !c.executes(p) {
		return false
	}
	// As it is now: the look may have read it before it took its name.
	above, ok := proc.Read(p.Parent)
	return !ok || !c.executes(above)
}

// executes reports whether p executes a supervisor of the state directory. Where
// that may not be read, the name and the owner decide.
func (c *census) executes(p proc.Process) bool {
	// Its own mounts may give the file another path, so the file itself is compared.
	exe, err := os.Stat(filepath.Join("/proc", strconv.Itoa(p.PID), "exe"))
	if err != nil {
		return p.Name == supervisorName && owner(p.PID) == c.uid
	}
	return c.executable(exe)
}

// executable reports whether exe is in the directory of the supervisors, which the
// daemon may fill at any time.
func (c *census) executable(exe os.FileInfo) bool {
	same := func(known os.FileInfo) bool { return os.SameFile(known, exe) }
	if slices.ContainsFunc(c.binaries, same) {
		return true
	}
	entries, err := os.ReadDir(c.bin)
	if err != nil {
		return false
	}
	c.binaries = nil
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			c.binaries = append(c.binaries, info)
		}
	}
	return slices.ContainsFunc(c.binaries, same)
}

// settled reports whether p will never be a member. What a daemon forks carries
// the daemon's name until it executes the supervisor.
func (c *census) settled(p proc.Process) bool {
	return c.looks == 1 && !strings.HasPrefix(p.Name, "hayward")
}

// owner is the real uid of a process, -1 for one that is gone.
func owner(pid int) int {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(b)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			uid, err := strconv.Atoi(strings.Fields(ids)[0])
			if err != nil {
				return -1
			}
			return uid
		}
	}
	return -1
}

func (c *census) count() Count {
	n := Count{Looks: c.looks, MostSupervisors: c.most.supervisors, MostProcesses: c.most.processes, Left: []string{}}
	for _, s := range c.all {
		n.Supervisors = append(n.Supervisors, *s)
	}
	for _, m := range c.members {
		n.Left = append(n.Left, fmt.Sprintf("%d %s", m.PID, m.Name))
	}
	slices.Sort(n.Left)
	return n
}
