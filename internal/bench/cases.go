package main

import (
	"fmt"
)

// benchCase is one thing that is measured. docs/performance.md names each.
type benchCase struct {
	name, about string
	take        func(*setting) ([]Figure, error)
}

// cases are all, in the order in which they are taken.
var cases = []benchCase{
	{"spawn", "from the request to the terminal snapshot of /bin/true", spawnCase},
	{"spawn-always", "the same with --sync-always", spawnAlwaysCase},
	{"path", "where the time of a spawn goes", pathCase},
	{"profile", "what a profile costs a spawn", profileCase},
	{"query", "a query of one id", queryCase},
	{"version", "the start of the command line", versionCase},
	{"startup", "a start with many records", startupCase},
	{"records", "queries, spawns and lists beside many records and live subagents", recordsCase},
	{"memory", "memory of supervisors and daemon", memoryCase},
	{"cancel", "the end of many live subagents", cancelCase},
	{"run", "a plan of 500 sandboxed /bin/true beside parallel and xargs with bubblewrap", runCase},
	{"sandbox", "what the sandbox adds to a start and to an open", sandboxCase},
	{"worktree", "what a worktree costs", worktreeCase},
}

const emptyFloor = "start and wait of an empty Go program"

// warmUp is how many pairs are taken and thrown away.
const warmUp = 10

// take measures a ratio.
func (s *setting) take(what, floor string, bound float64, figure, under measure) (Figure, error) {
	if _, _, err := pairs(warmUp, figure, under); err != nil {
		return Figure{}, fmt.Errorf("%s: %w", what, err)
	}
	return takePairs(s.opts.pairs, what, floor, bound, figure, under)
}

// takePairs measures a ratio without a warm-up.
func takePairs(count int, what, floor string, bound float64, figure, under measure) (Figure, error) {
	figures, floors, err := pairs(count, figure, under)
	if err != nil {
		return Figure{}, fmt.Errorf("%s: %w", what, err)
	}
	f := ratio(figures, floors)
	f.What, f.Floor, f.Bound = what, floor, bound
	return f, nil
}

// list is what a case returns that measured these.
func list(figures ...func() (Figure, error)) ([]Figure, error) {
	var all []Figure
	for _, take := range figures {
		f, err := take()
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func spawnCase(s *setting) ([]Figure, error) { return s.spawnOverFloor(s.plain, 5.0) }

func spawnAlwaysCase(s *setting) ([]Figure, error) { return s.spawnOverFloor(s.always, 6.5) }

func (s *setting) spawnOverFloor(open func() (*instance, error), bound float64) ([]Figure, error) {
	floor, err := s.floor()
	if err != nil {
		return nil, err
	}
	b, err := open()
	if err != nil {
		return nil, err
	}
	return list(func() (Figure, error) {
		return s.take("spawn of /bin/true to its end", emptyFloor, bound, b.spawn("workspace"), floor.run)
	})
}

func profileCase(s *setting) ([]Figure, error) {
	b, err := s.plain()
	if err != nil {
		return nil, err
	}
	return list(
		func() (Figure, error) {
			return s.take("spawn with profile workspace", "spawn with profile off", 1.6, b.spawn("workspace"), b.spawn("off"))
		},
		func() (Figure, error) {
			return s.take("spawn with profile strict", "spawn with profile off", 0, b.spawn("strict"), b.spawn("off"))
		},
	)
}

func queryCase(s *setting) ([]Figure, error) {
	b, err := s.plain()
	if err != nil {
		return nil, err
	}
	id, err := b.anEnd()
	if err != nil {
		return nil, err
	}
	return list(func() (Figure, error) {
		return s.take("query of one id", "a request that the service framework answers", 2.0, b.query(id), b.ping)
	})
}

func versionCase(s *setting) ([]Figure, error) {
	floor, err := s.floor()
	if err != nil {
		return nil, err
	}
	return list(func() (Figure, error) {
		return s.take("hayward version", emptyFloor, 0,
			toEnd(s.opts.program, "version"), floor.run)
	})
}
