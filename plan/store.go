package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/durable"
)

const (
	// recordSchema is the version of a run's record.
	recordSchema = 1
	// runFile is the record, summaryFile how the run ended, journalFile the ends
	// of its attempts, lockFile what the process that executes it holds.
	runFile     = "run.json"
	summaryFile = "summary.json"
	journalFile = "ends.jsonl"
	lockFile    = "lock"
	// retention is how long the record of a run is kept: as long as the
	// coordinator keeps the records of its subagents.
	retention = 30 * 24 * time.Hour
	// refLength is how much of the end of an id will do for it.
	refLength = 4
)

// Runs is the directory in which runs are kept, one directory for each, named by
// its id. The zero value keeps nothing.
type Runs struct {
	Dir string
}

// record is what a run keeps of itself. It is written once, before anything is
// spawned, and never changed: what came of the subagents is known to the
// coordinator, whose records are found by ids that follow from this.
type record struct {
	Schema    int       `json:"schema"`
	RunID     string    `json:"run_id"`
	StartedAt time.Time `json:"started_at"`
	Plan      *Plan     `json:"plan"`
}

// Create makes the record of a new run of p and takes it for this process.
func (r Runs) Create(p *Plan) (*Record, error) {
	id := events.NewID()
	rec := &Record{ID: id, Plan: p, StartedAt: time.Now().UTC(), dir: filepath.Join(r.Dir, id)}
	if err := os.MkdirAll(rec.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the record of run %s: %w", id, err)
	}
	err := rec.take(0)
	if err == nil {
		err = writeDurably(rec.dir, runFile, record{recordSchema, id, rec.StartedAt, p})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the record of run %s: %w", id, err), rec.Close(), os.RemoveAll(rec.dir))
	}
	if err := durable.SyncDir(r.Dir); err != nil {
		return nil, errors.Join(fmt.Errorf("make the record of run %s: %w", id, err), rec.Close())
	}
	return rec, nil
}

// Forget removes the records of runs that began before t and that no process
// executes.
func (r Runs) Forget(t time.Time) error {
	ids, err := r.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !startOf(id).Before(t) {
			break // the others are younger
		}
		old := &Record{ID: id, dir: filepath.Join(r.Dir, id)}
		if _, driven := old.Driver(); driven {
			continue
		}
		if err := os.RemoveAll(old.dir); err != nil {
			return fmt.Errorf("remove the old record of run %s: %w", id, err)
		}
	}
	return nil
}

// startOf is when the run with that id began.
func startOf(id string) time.Time {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 {
		return time.Now()
	}
	sec, nsec := u.Time().UnixTime()
	return time.Unix(sec, nsec)
}

// ids lists the runs, oldest first.
func (r Runs) ids() ([]string, error) {
	entries, err := os.ReadDir(r.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if events.ValidID(e.Name()) && e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	sort.Strings(ids)
	return ids, nil
}

// List opens every run, oldest first. One that died before it had a record
// started nothing and is left out.
func (r Runs) List() ([]*Record, error) {
	ids, err := r.ids()
	if err != nil {
		return nil, err
	}
	var runs []*Record
	for _, id := range ids {
		rec, err := r.open(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, rec)
	}
	return runs, nil
}

// Last opens the youngest run.
func (r Runs) Last() (*Record, error) {
	ids, err := r.ids()
	if err != nil {
		return nil, err
	}
	for i := len(ids) - 1; i >= 0; i-- {
		rec, err := r.open(ids[i])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return rec, err
	}
	return nil, events.Errorf(events.CodeUnknownID, events.LayerGate, "there is no run yet").
		WithRemedy("start one: hayward run PLAN.toml")
}

// Find opens the run that ref names: an id, or the last four or more characters
// of one.
func (r Runs) Find(ref string) (*Record, error) {
	ids, err := r.ids()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, id := range ids {
		if id == ref || (len(ref) >= refLength && strings.HasSuffix(id, ref)) {
			found = append(found, id)
		}
	}
	if len(found) > 1 {
		return nil, events.Errorf(events.CodeAmbiguousID, events.LayerGate, "%s is the end of several runs: %s", clip(ref), strings.Join(found, ", "))
	}
	if len(found) == 1 {
		rec, err := r.open(found[0])
		if !errors.Is(err, fs.ErrNotExist) {
			return rec, err
		}
	}
	return nil, events.Errorf(events.CodeUnknownID, events.LayerGate, "there is no run %s", clip(ref)).
		WithRemedy("see them all: hayward run --list")
}

// open reads the record of a run.
func (r Runs) open(id string) (*Record, error) {
	dir := filepath.Join(r.Dir, id)
	var kept record
	if err := readRecord(dir, runFile, &kept); err != nil {
		return nil, fmt.Errorf("open run %s: %w", id, err)
	}
	if kept.Schema != recordSchema || kept.RunID != id || kept.Plan == nil || len(kept.Plan.Subagents) == 0 {
		return nil, events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "open run %s: its record is not one of this version: %s", id, filepath.Join(dir, runFile))
	}
	return &Record{ID: id, Plan: kept.Plan, StartedAt: kept.StartedAt, dir: dir}, nil
}

func readRecord(dir, name string, v any) error {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return events.DecodeRecord(b, v)
}

// writeDurably makes dir/name hold v: all of it or, after a crash, what it held
// before.
func writeDurably(dir, name string, v any) error {
	b, err := events.MarshalRecord(v)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, name), append(b, '\n'))
}
