package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// takePatience is how long a run is waited for that another process holds: one
// that only looks lets go at once, and one that was just killed leaves.
const takePatience = 2 * time.Second

// Record is one run as it is kept. Whoever executes it takes it first; to read
// it needs no leave.
type Record struct {
	ID string
	// Plan is the plan as it was when the run began.
	Plan      *Plan
	StartedAt time.Time

	dir string
	// lock and journal are open while this process holds the run.
	lock, journal *os.File
}

// Take makes this process the one that executes the run.
func (r *Record) Take() error { return r.take(takePatience) }

func (r *Record) take(patience time.Duration) error {
	lock, err := os.OpenFile(filepath.Join(r.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("take run %s: %w", r.ID, err)
	}
	for end := time.Now().Add(patience); ; {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, _ := r.Driver()
		return errors.Join(events.Errorf(events.CodeBusy, events.LayerGate, "run %s goes on already, in process %d", r.ID, pid).
			WithRemedy("watch it: hayward report %s", shortID(r.ID)), lock.Close())
	}
	if err == nil {
		err = lock.Truncate(0)
	}
	if err == nil {
		_, err = lock.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("take run %s: %w", r.ID, err), lock.Close())
	}
	r.lock = lock
	if r.journal, err = openJournal(filepath.Join(r.dir, journalFile)); err != nil {
		return errors.Join(fmt.Errorf("take run %s: %w", r.ID, err), r.Close())
	}
	return nil
}

// Driver returns the process that executes the run, if one does.
func (r *Record) Driver() (pid int, driven bool) {
	lock, err := os.Open(filepath.Join(r.dir, lockFile))
	if err != nil {
		return 0, false // never taken, or gone
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		return 0, false
	}
	text := make([]byte, 20)
	n, _ := lock.ReadAt(text, 0) // short at its end
	pid, _ = strconv.Atoi(strings.TrimSpace(string(text[:n])))
	return pid, true
}

// Close lets go of the run.
func (r *Record) Close() error {
	var errs []error
	for _, f := range []*os.File{r.journal, r.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	r.journal, r.lock = nil, nil
	return errors.Join(errs...)
}

// Keep appends the end of an attempt, or that end again with its on_done. A line
// that was written is there for the next process, whatever becomes of this one.
func (r *Record) Keep(res Result) error {
	b, err := events.MarshalRecord(res)
	if err == nil {
		_, err = r.journal.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the end of %s in run %s: %w", res.Name, r.ID, err)
	}
	return nil
}

// openJournal opens the file for appending. What a process that died left of its
// last line is cut off.
func openJournal(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if end := bytes.LastIndexByte(text, '\n') + 1; err == nil && end < len(text) {
		err = f.Truncate(int64(end))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ends reads what was kept: by name and attempt, the last line of each.
func (r *Record) ends() (map[string]map[int]Result, error) {
	path := filepath.Join(r.dir, journalFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the ends of run %s: %w", r.ID, err)
	}
	ends := make(map[string]map[int]Result)
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written, or cut short by the end of its process
		}
		var res Result
		if err := events.DecodeRecord(line, &res); err != nil {
			return nil, events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "read the ends of run %s: %s: %w", r.ID, path, err)
		}
		if ends[res.Name] == nil {
			ends[res.Name] = make(map[int]Result)
		}
		ends[res.Name][res.Attempt] = res
	}
	return ends, nil
}

// Finish keeps how the run ended and returns the path of that.
func (r *Record) Finish(s Summary) (path string, err error) {
	if err := writeDurably(r.dir, summaryFile, s); err != nil {
		return "", fmt.Errorf("keep the summary of run %s: %w", r.ID, err)
	}
	return filepath.Join(r.dir, summaryFile), nil
}

// reopen takes back how the run ended.
func (r *Record) reopen() error {
	if err := os.Remove(filepath.Join(r.dir, summaryFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("continue run %s: %w", r.ID, err)
	}
	return nil
}

// Finished returns how the run ended, if it has.
func (r *Record) Finished() (s Summary, finished bool, err error) {
	err = readRecord(r.dir, summaryFile, &s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, false, nil
	case err != nil:
		return s, false, fmt.Errorf("read the summary of run %s: %w", r.ID, err)
	}
	return s, true, nil
}

// Changed says how the plan file differs from the plan of the run; empty when it
// does not, or when there is no file.
func (r *Record) Changed() string {
	if r.Plan.Digest == "" {
		return ""
	}
	path := filepath.Join(r.Plan.Dir, filepath.Base(r.Plan.Path))
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + " is gone"
	case err != nil:
		return fmt.Sprintf("%s cannot be compared: %v", path, err)
	case digest(string(text)) != r.Plan.Digest:
		return path + " has changed"
	}
	return ""
}

// shortID is the end of an id that a person can type.
func shortID(id string) string { return id[max(0, len(id)-8):] }

// Survey finds out what became of every subagent of the run: the journal says
// what its processes saw, the coordinator knows the rest. Nothing is changed.
func (r *Record) Survey(ctx context.Context, runner Runner) (Survey, error) {
	ends, err := r.ends()
	if err != nil {
		return Survey{}, err
	}
	s := &survey{run: r.ID, runner: runner, ends: ends, found: make(map[string]Earlier), gone: make(map[string]bool)}
	err = s.all(ctx, r.Plan)
	return Survey{s.found, s.fresh}, err
}
