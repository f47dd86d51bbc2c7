package spawner

import (
	"strconv"

	"github.com/hayward-dev/hayward/events"
)

// What is kept free of the host: a person must be able to log in and look, and
// the daemon to write what is accepted.
const (
	reservePIDs  = 1000
	reserveFiles = 256
	// pidsPerChild and filesPerChild are what one more child takes of the daemon's host
	// at least: its threads, and the descriptors that it is watched through.
	pidsPerChild  = 16
	filesPerChild = 16
)

// room is what of the host is in use. A bound of 0 is none.
type room struct {
	pids, maxPIDs   int
	files, maxFiles int
}

// refusal says why no further child may be made, or nil.
func (r room) refusal(id string) *events.Error {
	for _, c := range []struct {
		limit, what                string
		used, need, reserve, bound int
	}{
		{"host_pids", "process ids of the host", r.pids, pidsPerChild, reservePIDs, r.maxPIDs},
		{"host_files", "descriptors of the daemon", r.files, filesPerChild, reserveFiles, r.maxFiles},
	} {
		if c.bound <= 0 || c.used+c.need+c.reserve <= c.bound {
			continue
		}
		return events.Errorf(events.CodeLimit, events.LayerGate, "spawn %s: %d of %d %s are in use, and %d are kept free",
			id, c.used, c.bound, c.what, c.reserve).
			WithRemedy("end other processes, or raise the bound (kernel.pid_max, RLIMIT_NOFILE)").
			WithDetail("limit", c.limit).WithDetail("max", strconv.Itoa(c.bound-c.reserve)).
			WithDetail("used", strconv.Itoa(c.used))
	}
	return nil
}

// CheckHost refuses a spawn for which the host has no room.
func CheckHost(id string) *events.Error {
	r, err := hostRoom()
	if err != nil {
		return events.Errorf(events.CodeInternal, events.LayerCoordinator, "spawn %s: look how full the host is: %w", id, err)
	}
	return r.refusal(id)
}
