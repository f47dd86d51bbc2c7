package store

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// comparison holds what the bucket and the run directory say about one id.
type comparison struct {
	store *Store
	id    string
	entry *entry // nil: the bucket has none
	log   *zap.Logger

	dir    *rundir.Dir // nil: there is none
	spec   part[events.Spec]
	result part[events.Record]

	stored coordinator.Stored
	// found is false when nothing was ever accepted.
	found, recovered, damaged bool
}

// part is one file of a run directory. Neither ok nor torn: it is missing.
type part[T any] struct {
	value    T
	ok, torn bool
}

// compare fills c.stored from what both witnesses say.
func (c *comparison) compare(ctx context.Context) (err error) {
	if c.agreed() {
		c.found, c.stored = true, coordinator.Stored{Record: c.entry.record, Revision: c.entry.revision}
		return nil
	}
	c.log = c.log.With(zap.String("id", c.id))
	c.found, err = c.reconcile(ctx)
	return err
}

// agreed reports that the record has ended, that its result is the bucket's record to
// the byte, and that its spec is whole. That is so for nearly all, so it takes as few
// calls of the system as can be.
func (c *comparison) agreed() bool {
	if c.entry == nil || c.entry.err != nil || c.entry.record.Live() {
		return false
	}
	result, err := c.store.root.ReadResultDocument(c.id)
	return err == nil && maphash.Bytes(sumSeed, result) == c.entry.sum && c.store.root.CheckSpec(c.id) == nil
}

// reconcile compares the witnesses, restores what is missing and fills c.stored;
// found is false when nothing was ever accepted.
func (c *comparison) reconcile(ctx context.Context) (found bool, err error) {
	c.dir, err = c.store.root.Open(c.id)
	if err != nil {
		c.dir = nil
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	defer func() {
		if c.dir != nil {
			err = errors.Join(err, c.dir.Close())
		}
	}()
	if c.entry != nil && c.entry.err != nil {
		c.log.Error("the bucket's record cannot be read", zap.Error(c.entry.err))
	}
	if c.dir != nil {
		c.spec = take(c, rundir.SpecFile, c.dir.ReadSpec)
		c.result = take(c, rundir.ResultFile, c.dir.ReadResult)
		if c.result.ok && c.result.value.Live() {
			c.log.Error("result.json holds a live record")
			c.result = part[events.Record]{torn: true}
		}
	}
	best, fromBucket, ok, err := c.best()
	if err == nil && !ok && c.damaged {
		c.stored = c.lost()
		return true, nil
	}
	if err != nil || !ok {
		return false, err
	}
	c.stored.Record = best
	if fromBucket {
		c.stored.Revision = c.entry.revision
	} else if err := c.restoreEntry(ctx); err != nil {
		return false, err
	}
	if best.Live() {
		return true, c.checkLive()
	}
	if c.spec.torn {
		c.damaged = true
	}
	return true, c.restoreResult()
}

// take reads one file; one that cannot be read is as good as torn.
func take[T any](c *comparison, name string, read func() (T, error)) part[T] {
	v, err := read()
	switch {
	case err == nil:
		return part[T]{value: v, ok: true}
	case errors.Is(err, fs.ErrNotExist):
		return part[T]{}
	}
	c.log.Error("a file of the run directory cannot be read", zap.String("file", name), zap.Error(err))
	return part[T]{torn: true}
}

// best picks the latest record of all witnesses.
func (c *comparison) best() (best events.Record, fromBucket, ok bool, err error) {
	if c.entry != nil && c.entry.err == nil {
		best, fromBucket, ok = c.entry.record, true, true
	}
	if c.result.ok && (!ok || later(&c.result.value, &best)) {
		best, fromBucket, ok = c.result.value, false, true
	}
	if ok && !best.Live() || c.dir == nil {
		if !ok {
			// An unreadable record without a directory.
			c.damaged = true
		}
		return best, fromBucket, ok, nil
	}
	live := take(c, rundir.RecordFile, c.dir.ReadRecord)
	if live.ok && live.value.Live() && (!ok || later(&live.value, &best)) {
		best, fromBucket, ok = live.value, false, true
	}
	if ok {
		return best, fromBucket, true, nil
	}
	if c.spec.ok {
		best, err = c.recordOfSpec()
		return best, false, err == nil, err
	}
	return best, false, false, c.discard()
}

// lost stands for a record of which nothing can be read: a failed subagent, so
// that whoever asks for the id is told what became of it and nobody takes the id
// again. It is not written: what there is stays as evidence, and each start names
// it anew.
func (c *comparison) lost() coordinator.Stored {
	at := time.Now().UTC().Round(0)
	r := events.Record{
		Schema: events.RecordSchema, ID: c.id, Run: 1, Seq: 1,
		State: events.StateCompleted, Status: events.StatusFailed, Reason: events.ReasonCrash,
		CreatedAt: at, EndedAt: &at, ReadAt: &at,
		Error: events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator,
			"subagent %s: its record is damaged and cannot be restored", c.id).
			WithRemedy("what is left of it is in %s", c.store.root.Path()),
	}
	st := coordinator.Stored{Record: r}
	if c.entry != nil {
		st.Revision = c.entry.revision
	}
	return st
}

// later orders records of one id: by run, then by the number of the state.
func later(a, b *events.Record) bool {
	if a.Run != b.Run {
		return a.Run > b.Run
	}
	return a.Seq > b.Seq
}

// restoreEntry puts c.stored into the bucket, which has none, an older one or
// one that cannot be read.
func (c *comparison) restoreEntry(ctx context.Context) error {
	value, err := events.MarshalRecord(c.stored.Record)
	if err != nil {
		return err
	}
	revision := uint64(0)
	if c.entry != nil {
		revision = c.entry.revision
	}
	c.stored.Revision, err = c.store.write(ctx, c.id, value, revision)
	if err != nil {
		return err
	}
	c.recovered = true
	c.log.Warn("a record was restored from its run directory", zap.String("state", string(c.stored.Record.State)))
	return nil
}

// checkLive gives a live record its spec.
func (c *comparison) checkLive() error {
	if c.dir == nil {
		d, err := c.store.root.Create(c.id)
		if err != nil {
			return err
		}
		c.dir = d
		c.log.Error("the run directory of a live subagent is gone and was made anew")
	}
	if !c.spec.ok {
		c.damaged = true
		c.log.Error("the spec of a live subagent is lost", zap.Bool("torn", c.spec.torn))
		return nil
	}
	c.stored.Spec = &c.spec.value
	return nil
}

// restoreResult makes result.json agree with the record.
func (c *comparison) restoreResult() error {
	r := &c.stored.Record
	if c.result.ok && !later(r, &c.result.value) {
		return nil
	}
	if c.dir == nil {
		d, err := c.store.root.Create(c.id)
		if err != nil {
			return err
		}
		c.dir = d
	}
	if err := c.dir.WriteResult(*r); err != nil {
		return c.store.failure(context.Background(), "restore the result of", c.id, err)
	}
	if !c.result.ok {
		c.recovered = true
		c.log.Warn("a result was restored from its record", zap.Bool("torn", c.result.torn))
	}
	return nil
}

// discard handles a directory without anything to make a record of: one whose
// making was interrupted goes, everything else is damage.
func (c *comparison) discard() error {
	names, err := c.dir.Files()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, ".") {
			c.damaged = true
			c.log.Error("there is neither a record nor a spec", zap.Strings("files", names))
			return nil
		}
	}
	if c.entry != nil {
		c.damaged = true
		return nil
	}
	c.log.Info("an unfinished run directory was removed")
	return c.store.root.Remove(c.id)
}

// recordOfSpec makes the record of a subagent of which nothing but the spec is
// left. It is queued unless there are signs that it was started: nothing starts
// twice.
func (c *comparison) recordOfSpec() (events.Record, error) {
	state := events.StateQueued
	for _, name := range []string{rundir.ReportFile, rundir.StdoutFile, rundir.SandboxFile, rundir.RecordFile} {
		exists, err := c.dir.Exists(name)
		if err != nil {
			return events.Record{}, err
		}
		if exists {
			state = events.StatePending
		}
	}
	spec := &c.spec.value
	req := &spec.Request
	r := events.Record{
		Schema: events.RecordSchema, ID: spec.ID, Run: spec.Run, Seq: 1,
		Name: req.Name, Description: req.Description, SubagentType: req.SubagentType,
		ParentSessionID: req.ParentSessionID, ParentPromptID: req.ParentPromptID,
		ParentID: spec.ParentID, Depth: spec.Depth, ResumedFrom: req.ResumeFrom,
		Labels: req.Labels, CommandLine: clip(strings.Join(req.Command, " "), events.MaxCommandLine),
		Cwd: req.Cwd, Workspace: req.Workspace, Isolation: req.Isolation,
		Background: req.RunInBackground,
		State:      state, Status: events.StatusInitializing, CreatedAt: spec.CreatedAt,
	}
	if state == events.StatePending {
		r.PendingAt = &spec.CreatedAt
	}
	if req.MaxRuntimeMS != nil {
		r.MaxRuntimeMS = *req.MaxRuntimeMS
	}
	if req.MaxMemoryBytes != nil {
		r.MaxMemoryBytes = *req.MaxMemoryBytes
	}
	return r, nil
}

// clip shortens s to at most n bytes of UTF-8.
func clip(s string, n int) string {
	return strings.ToValidUTF8(s[:min(len(s), n)], "")
}
