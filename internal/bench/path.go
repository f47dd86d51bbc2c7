package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// parts are those of the way of a spawn, by the times in its record.
var parts = []struct {
	what string
	took func(asked, answered time.Time, r events.Record) time.Duration
}{
	{"request to acceptance: connection, decoding, resolution, the loop",
		func(asked, _ time.Time, r events.Record) time.Duration { return r.CreatedAt.Sub(asked) }},
	{"acceptance to pending: spec.json and the record are kept",
		func(_, _ time.Time, r events.Record) time.Duration { return r.PendingAt.Sub(r.CreatedAt) }},
	{"pending to started: sandbox compiled, fork, record kept, release, constructor, Go runtime, exec of the command",
		func(_, _ time.Time, r events.Record) time.Duration { return r.StartedAt.Sub(*r.PendingAt) }},
	{"started to ended: the command, its report, the end of the namespace, the bus drained, results read",
		func(_, _ time.Time, r events.Record) time.Duration { return r.EndedAt.Sub(*r.StartedAt) }},
	{"ended to answer: result.json and the record are kept, the reply",
		func(_, answered time.Time, r events.Record) time.Duration { return answered.Sub(*r.EndedAt) }},
}

// pathCase says where the time of a spawn goes.
func pathCase(s *setting) ([]Figure, error) {
	b, err := s.plain()
	if err != nil {
		return nil, err
	}
	samples := make([][]float64, len(parts))
	for range s.opts.pairs {
		asked := time.Now()
		id, err := b.anEnd()
		if err != nil {
			return nil, err
		}
		answered := time.Now()
		r, err := b.record(id)
		if err != nil {
			return nil, err
		}
		if r.PendingAt == nil || r.StartedAt == nil || r.EndedAt == nil {
			return nil, fmt.Errorf("the record of %s lacks a time", id)
		}
		for i, p := range parts {
			samples[i] = append(samples[i], float64(p.took(asked, answered, r).Microseconds())/1000)
		}
	}
	var all []Figure
	for i, p := range parts {
		f := amount("ms", samples[i])
		f.What = p.what
		all = append(all, f)
	}
	return all, nil
}

// record is the terminal record of a subagent.
func (b *instance) record(id string) (events.Record, error) {
	root, err := rundir.Open(filepath.Join(b.state, "subagents"))
	if err != nil {
		return events.Record{}, err
	}
	defer root.Close()
	d, err := root.Open(id)
	if err != nil {
		return events.Record{}, err
	}
	r, err := d.ReadResult()
	return r, errors.Join(err, d.Close())
}
