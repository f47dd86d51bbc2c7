package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/proc"
)

// The figures of many records and many live subagents. What takes seconds is taken
// a few times only.
const (
	startupPairs = 5
	cancelPairs  = 3
)

func startupCase(s *setting) ([]Figure, error) {
	state, err := s.seeded()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	start := func() (time.Duration, error) {
		b := &instance{ctx: s.ctx, program: s.opts.program, state: state}
		took, err := b.serve(s.crowdFlags()...)
		return took, errors.Join(err, b.stop())
	}
	bare := toEnd(self, "-replay", state)
	if _, _, err := pairs(1, start, bare); err != nil {
		return nil, err
	}
	return list(func() (Figure, error) {
		return takePairs(startupPairs, fmt.Sprintf("start with %d finished until it serves", s.opts.finished), "a program that opens the store and reads every record", 3.0, start, bare)
	})
}

func recordsCase(s *setting) ([]Figure, error) {
	few, many, err := s.crowds()
	if err != nil {
		return nil, err
	}
	fewID, fewErr := few.anEnd()
	manyID, manyErr := many.anEnd()
	if err := errors.Join(fewErr, manyErr); err != nil {
		return nil, err
	}
	const floor = "the same with 10 finished and 10 live"
	return list(
		func() (Figure, error) {
			return s.take("query of one id, "+s.crowdText(), floor, 1.5, many.query(manyID), few.query(fewID))
		},
		func() (Figure, error) {
			return s.take("spawn of /bin/true, "+s.crowdText(), floor, 1.5, many.spawn("workspace"), few.spawn("workspace"))
		},
		func() (Figure, error) {
			return s.take("a page of 10 of list_active, "+s.crowdText(), floor, 1.5, many.list(fewLive), few.list(fewLive))
		},
	)
}

func (s *setting) crowdText() string {
	return fmt.Sprintf("%d finished, %d live", s.opts.finished, s.opts.live)
}

func (s *setting) crowds() (few, many *instance, err error) {
	if few, err = s.few(); err != nil {
		return nil, nil, err
	}
	many, err = s.many()
	return few, many, err
}

// memoryCase compares what daemons use that differ in one thing each.
func memoryCase(s *setting) ([]Figure, error) {
	many, err := s.many()
	if err != nil {
		return nil, err
	}
	all, err := many.supervisors()
	if err != nil {
		return nil, err
	}
	var supervisors []float64
	for _, p := range all {
		kib, err := proc.PSS(p.PID)
		if err != nil {
			return nil, err
		}
		supervisors = append(supervisors, float64(kib))
	}
	crowded, err := proc.PSS(many.daemon.Process.Pid)
	if err != nil {
		return nil, err
	}
	plain, err := s.start(filepath.Join(s.dir, "bare"))
	if err != nil {
		return nil, err
	}
	bare, err := proc.PSS(plain.daemon.Process.Pid)
	if err != nil {
		return nil, err
	}
	single := func(what string, unit string, value float64) Figure {
		f := amount(unit, []float64{value})
		f.What = what
		return f
	}
	supervisor := amount("KiB", supervisors)
	supervisor.What, supervisor.Bound = fmt.Sprintf("PSS of a supervisor, %d live", s.opts.live), 2560
	return []Figure{
		supervisor,
		single("PSS of a daemon without records", "KiB", float64(bare)),
		single("PSS of a daemon with "+s.crowdText(), "KiB", float64(crowded)),
		single("PSS of a daemon for each finished record", "B", float64(many.alone-bare)*1024/float64(s.opts.finished)),
		single("PSS of a daemon for each live subagent", "KiB", float64(crowded-many.alone)/float64(s.opts.live)),
	}, nil
}

// cancelCase ends a thousand subagents by their prompt, until no process of them
// is left, and a thousand bare processes by SIGKILL.
func cancelCase(s *setting) ([]Figure, error) {
	many, err := s.many()
	if err != nil {
		return nil, err
	}
	round := 0
	prompt := "crowd"
	cancel := func() (time.Duration, error) {
		if round > 0 {
			prompt = fmt.Sprint("crowd-", round)
			if err := many.populate(prompt, s.opts.live); err != nil {
				return 0, err
			}
		}
		round++
		live, err := many.supervisors()
		if err != nil {
			return 0, err
		}
		timeout := (2 * time.Minute).Milliseconds()
		began := time.Now()
		_, err = many.c.Cancel(s.ctx, events.Cancel{
			ParentSessionID: session, Target: events.CancelTarget{ParentPromptID: prompt}, TimeoutMS: &timeout,
		})
		took := time.Since(began)
		if err != nil {
			return 0, err
		}
		if i := slices.IndexFunc(live, alive); i >= 0 {
			return 0, fmt.Errorf("process %d lives after the answer of the cancel", live[i].PID)
		}
		return took, nil
	}
	return list(func() (Figure, error) {
		return takePairs(cancelPairs, fmt.Sprintf("cancel by prompt of %d live subagents to zero processes", s.opts.live), "SIGKILL and wait of as many sleeping processes", 12, cancel, killBare(s.opts.live))
	})
}

func alive(p events.Process) bool {
	now, ok := proc.Read(p.PID)
	return ok && now.Start == p.StartTime && now.Living()
}

// killBare kills and reaps n processes that sleep.
func killBare(n int) measure {
	return func() (time.Duration, error) {
		sleep, err := exec.LookPath("sleep")
		if err != nil {
			return 0, err
		}
		all := make([]*os.Process, 0, n)
		for len(all) < n && err == nil {
			var p *os.Process
			if p, err = os.StartProcess(sleep, []string{"sleep", "3600"}, &os.ProcAttr{Env: []string{}}); err == nil {
				all = append(all, p)
			}
		}
		began := time.Now()
		errs := []error{err}
		for _, p := range all {
			errs = append(errs, p.Kill())
		}
		for _, p := range all {
			_, err := p.Wait()
			errs = append(errs, err)
		}
		return time.Since(began), errors.Join(errs...)
	}
}
