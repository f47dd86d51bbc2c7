package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/internal/store"
)

const (
	// fewFinished and fewLive are the finished records and live subagents of the
	// coordinator that the crowded one is compared with.
	fewFinished, fewLive = 10, 10
	// recordsPerSession keeps each session within the retention of a daemon.
	recordsPerSession = 500
	// writers is how many records are written at once.
	writers = 32
)

// records is the store of a state directory without a coordinator.
type records struct {
	server *bus.Server
	nc     *nats.Conn
	root   rundir.Root
}

func openRecords(ctx context.Context, state string) (_ *records, err error) {
	r := &records{}
	if r.server, err = bus.Start(ctx, bus.Options{StoreDir: filepath.Join(state, "jetstream")}); err != nil {
		return nil, err
	}
	if r.nc, err = r.server.Conn("bench"); err == nil {
		r.root, err = rundir.Open(filepath.Join(state, "subagents"))
	}
	if err != nil {
		return nil, errors.Join(err, r.server.Shutdown(context.WithoutCancel(ctx)))
	}
	return r, nil
}

func (r *records) close(ctx context.Context) error {
	r.nc.Close()
	return errors.Join(r.server.Shutdown(context.WithoutCancel(ctx)), r.root.Close())
}

// seed writes n finished subagents into the state directory, through the store, as
// a coordinator writes them: copies of the one that model is, with ids of their
// own, in many sessions, all of them read.
func seed(ctx context.Context, state, model string, n int) (err error) {
	r, err := openRecords(ctx, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	s, err := store.Open(ctx, r.nc, r.root, nil, store.WithDeferredSync())
	if err != nil {
		return err
	}
	d, err := r.root.Open(model)
	if err != nil {
		return err
	}
	spec, specErr := d.ReadSpec()
	record, recordErr := d.ReadResult()
	if err := errors.Join(specErr, recordErr, d.Close()); err != nil {
		return fmt.Errorf("read the model of the records: %w", err)
	}
	now := time.Now().UTC()
	var all errgroup.Group
	all.SetLimit(writers)
	for i := range n {
		all.Go(func() error {
			spec, record := spec, record
			at := now.Add(time.Duration(i-n) * time.Millisecond)
			spec.ID = events.NewID()
			spec.CreatedAt, spec.Request.ParentSessionID = at, fmt.Sprint("finished-", i/recordsPerSession)
			record.ID, record.ParentSessionID = spec.ID, spec.Request.ParentSessionID
			record.CreatedAt, record.PendingAt, record.StartedAt, record.EndedAt, record.ReadAt = at, &at, &at, &at, &at
			record.EndOrder = uint64(i + 2)
			_, err := s.Put(ctx, coordinator.Put{Record: record, Spec: &spec})
			return err
		})
	}
	return errors.Join(all.Wait(), s.Sync())
}

// replay opens the store of a state directory and reads every record of it, which
// is the floor of a start, and returns how many there were.
func replay(ctx context.Context, state string) (n int, err error) {
	r, err := openRecords(ctx, state)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	js, err := jetstream.New(r.nc)
	if err != nil {
		return 0, err
	}
	kv, err := js.KeyValue(ctx, events.Bucket)
	if err != nil {
		return 0, err
	}
	w, err := kv.WatchAll(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	all := make(map[string]*events.Record)
	for e := range w.Updates() {
		if e == nil {
			return len(all), nil
		}
		record := new(events.Record)
		if err := events.DecodeRecord(e.Value(), record); err != nil {
			return 0, fmt.Errorf("replay %s: %w", e.Key(), err)
		}
		all[e.Key()] = record
	}
	return 0, errors.New("replay: the connection was closed")
}
