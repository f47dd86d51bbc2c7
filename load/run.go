package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

// Deps is what [Run] works with.
type Deps struct {
	// Connect reaches the coordinator.
	Connect func(context.Context) (*client.Client, error)
	// Command makes the command of a client process, which calls [Serve] with its
	// stdin and stdout.
	Command func(context.Context) *exec.Cmd
	// Stderr is where client processes complain.
	Stderr io.Writer
	// Progress is called now and then.
	Progress func(delivered, of int)
}

// Report is the outcome of a load.
type Report struct {
	Scenario Scenario `json:"scenario"`
	Counts
	// Left are the processes of the load that live after the last end.
	Left             int               `json:"left"`
	LeftProcesses    []string          `json:"left_processes,omitempty"`
	CoordinatorKills int               `json:"coordinator_kills"`
	CancelStorms     int               `json:"cancel_storms"`
	Faults           []string          `json:"faults,omitempty"`
	DurationMS       int64             `json:"duration_ms"`
	PerSecond        float64           `json:"per_second"`
	LatencyMS        map[Stage]Latency `json:"latency_ms"`
	// ChildPSSKiB is the memory of a supervisor, the median and the greatest of
	// those that were looked at; Peak holds the greatest of each of the samples.
	ChildPSSKiB []int64  `json:"child_pss_kib,omitempty"`
	Peak        Sample   `json:"peak"`
	Samples     []Sample `json:"samples"`
	// stages are the single times, for the picture, and ends what was delivered.
	stages map[Stage][]time.Duration
	ends   []End
}

// Good reports whether nothing was lost, doubled, left or wrong.
func (r Report) Good() bool {
	return r.Lost == 0 && r.Duplicated == 0 && r.Left == 0 && r.Wrong == 0 && len(r.Faults) == 0 &&
		r.Accepted+r.Refused == r.Scenario.Children && r.Delivered == r.Accepted
}

// Run drives the load. Its error says that the load could not be driven to its
// end; the report is then of what was seen until then.
func Run(ctx context.Context, s Scenario, d Deps) (_ Report, err error) {
	if err := s.Check(); err != nil {
		return Report{}, err
	}
	dir, err := os.MkdirTemp("", "hayward-load-")
	if err != nil {
		return Report{}, fmt.Errorf("load: make its directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return Report{}, fmt.Errorf("load: %w", err)
	}
	ran := filepath.Join(dir, "ran")
	if err := os.Mkdir(ran, 0o700); err != nil {
		return Report{}, fmt.Errorf("load: %w", err)
	}
	c, err := d.Connect(ctx)
	if err != nil {
		return Report{}, err
	}
	defer c.Close()
	r := &run{scenario: s, deps: d, dir: dir, ran: ran, coordinator: c, ledger: NewLedger(), began: time.Now()}
	err = r.drive(ctx)
	return r.report(), err
}

// run is one load under way.
type run struct {
	scenario    Scenario
	deps        Deps
	dir, ran    string
	coordinator *client.Client
	began       time.Time

	mu        sync.Mutex
	ledger    *Ledger // guarded by mu
	delivered map[string]bool
	ends      []End
	orders    []io.Writer // of the client processes
	done      chan struct{}

	kills, storms int
	samples       []Sample
	childPSS      []int64
}

// drive starts the clients and waits for them, with storms, kills and samples
// meanwhile.
func (r *run) drive(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	r.delivered, r.done = make(map[string]bool), make(chan struct{})
	name := "load-" + events.NewID()
	session := cmp.Or(r.scenario.Session, name)
	var clients, watchers sync.WaitGroup
	errs := make(chan error, r.scenario.Clients+1)
	first := 0
	for n := range r.scenario.Clients {
		count := share(r.scenario.Children, r.scenario.Clients, n)
		if count == 0 {
			continue
		}
		part := Share{
			Scenario: r.scenario, Session: sessionOf(session, n), Load: name, First: first, Count: count,
			Unread: max(share(r.scenario.Concurrency, r.scenario.Clients, n), 1), Workspace: r.dir, Ran: r.ran,
		}
		first += count
		wait, err := r.start(ctx, part)
		if err != nil {
			cancel(err)
			errs <- err
			break
		}
		clients.Go(func() {
			if err := wait(); err != nil {
				cancel(err) // the others would wait for orders that never come
				errs <- err
			}
		})
	}
	watchers.Go(func() { r.sample(ctx) })
	watchers.Go(func() { r.disturb(ctx) })
	clients.Wait()
	close(r.done)
	watchers.Wait()
	err := context.Cause(parent) // then the clients ended because of it
	if err == nil {
		select {
		case err = <-errs:
		default:
		}
	}
	if err != nil {
		err = errors.Join(err, r.endSessions(session))
	}
	return err
}

// endSessions ends what a load that failed left running.
func (r *run) endSessions(session string) error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	var errs []error
	for n := range r.scenario.Clients {
		_, err := r.coordinator.Cancel(ctx, events.Cancel{
			ParentSessionID: sessionOf(session, n), Target: events.CancelTarget{Session: true}, Kill: true,
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("end session %s: %w", sessionOf(session, n), err))
		}
	}
	return errors.Join(errs...)
}

func sessionOf(load string, client int) string { return fmt.Sprintf("%s-%d", load, client) }

// share is part n of whole, split evenly.
func share(whole, parts, n int) int {
	return whole*(n+1)/parts - whole*n/parts
}

// start starts one client process. wait returns once it has ended and all that it
// told is in the ledger.
func (r *run) start(ctx context.Context, part Share) (wait func() error, err error) {
	cmd := r.deps.Command(ctx)
	var said strings.Builder
	cmd.Stderr = io.MultiWriter(r.deps.Stderr, &said)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("load: start a client: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("load: start a client: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("load: start a client: %w", err)
	}
	r.mu.Lock()
	r.orders = append(r.orders, in)
	r.mu.Unlock()
	told := json.NewEncoder(in).Encode(part)
	return func() error {
		err := errors.Join(told, readEntries(out, r.enter))
		if waitErr := cmd.Wait(); waitErr != nil {
			err = errors.Join(fmt.Errorf("load: client of session %s: %w: %s", part.Session, waitErr, strings.TrimSpace(said.String())), err)
		}
		return err
	}, nil
}

func (r *run) enter(e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ledger.Add(e)
	if e.Kind == EntryDelivered && !r.delivered[e.ID] {
		r.delivered[e.ID] = true
		r.ends = append(r.ends, *e.End)
		if r.deps.Progress != nil {
			r.deps.Progress(len(r.delivered), r.scenario.Children)
		}
	}
}

// disturbPause is how often it is looked whether the next disturbance is due.
const disturbPause = 20 * time.Millisecond

// disturb sends storms and kills the coordinator, spread over the load.
func (r *run) disturb(ctx context.Context) {
	total := r.scenario.CancelStorms + r.scenario.KillCoordinator
	ticker := time.NewTicker(disturbPause)
	defer ticker.Stop()
	for r.kills+r.storms < total {
		select {
		case <-r.done:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		r.mu.Lock()
		delivered := len(r.delivered)
		r.mu.Unlock()
		// The last is over well before the load is.
		if delivered*(total+1) < r.scenario.Children*(r.kills+r.storms+1) {
			continue
		}
		kill := r.storms == r.scenario.CancelStorms || (r.kills < r.scenario.KillCoordinator && r.kills <= r.storms)
		var err error
		if kill {
			r.kills++
			err = r.killCoordinator(ctx)
		} else {
			r.storms++
			err = r.order(OrderStorm)
		}
		if err != nil && ctx.Err() == nil {
			r.enter(Entry{Kind: EntryFault, At: time.Now(), Text: err.Error()})
		}
	}
}

// killCoordinator sends SIGKILL to the coordinator that answers now.
func (r *run) killCoordinator(ctx context.Context) error {
	status, err := r.coordinator.Status(ctx)
	if err != nil {
		return fmt.Errorf("find the coordinator to kill: %w", err)
	}
	fd, err := unix.PidfdOpen(status.PID, 0)
	if err != nil {
		return fmt.Errorf("kill the coordinator: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return fmt.Errorf("kill the coordinator: %w", err)
	}
	return nil
}

// order tells all clients.
func (r *run) order(o Order) error {
	r.mu.Lock()
	clients := slices.Clone(r.orders)
	r.mu.Unlock()
	var errs []error
	for _, w := range clients {
		// A client that has ended reads no more.
		if err := json.NewEncoder(w).Encode(o); err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, fmt.Errorf("order a %s: %w", o, err))
		}
	}
	return errors.Join(errs...)
}

const (
	sampleEvery = 250 * time.Millisecond
	// memoryEvery is how many samples go by between looks at the memory of the
	// supervisors: reading it stops them for a moment.
	memoryEvery   = 4
	sampleTimeout = 2 * time.Second
	// endTimeout bounds the end of what a failed load left running.
	endTimeout = time.Minute
)

// sample looks at the coordinator until the load is over.
func (r *run) sample(ctx context.Context) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if s, ok := r.look(ctx); ok {
			r.samples = append(r.samples, s)
		}
		if n%memoryEvery == 0 {
			r.childPSS = append(r.childPSS, supervisorPSS()...)
		}
		select {
		case <-r.done:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look takes one sample; there is none while there is no coordinator.
func (r *run) look(ctx context.Context) (Sample, bool) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	status, err := r.coordinator.Status(ctx)
	if err != nil {
		return Sample{}, false
	}
	s := Sample{AtMS: time.Since(r.began).Milliseconds(), Live: status.Active + status.Pending, Queued: status.Queued}
	s.measure(status.PID)
	return s, true
}
