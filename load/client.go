package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

// Order is what [Run] tells a client while it works.
type Order string

// OrderStorm makes a client cancel its prompt, several times at once, while it
// goes on to spawn under it.
const OrderStorm Order = "storm"

const (
	// stormCancels is how many cancels of a prompt are sent at once, and stormSpawns
	// how many more spawns are tried under it.
	stormCancels = 4
	stormSpawns  = 4
	// spawners is how many spawns of one client may be unanswered.
	spawners = 8
	// readLease is how long ends are kept from other readers until they are
	// acknowledged, and readPause how often a reader looks that was told of nothing.
	readLease = 30 * time.Second
	readPause = time.Second
)

// Share is one client's part of a load.
type Share struct {
	Scenario  Scenario `json:"scenario"`
	Session   string   `json:"session"`
	Load      string   `json:"load"` // begins the names of its prompts
	First     int      `json:"first"`
	Count     int      `json:"count"`
	Unread    int      `json:"unread"` // how many may be unread at once
	Workspace string   `json:"workspace"`
	Ran       string   `json:"ran"` // the directory in which subagents note that they ran
}

// prompt is the nth that is spawned under. A session may have seen other loads.
func (s Share) prompt(n int) string { return fmt.Sprintf("%s-p%d", s.Load, n) }

// Client works its share off through c and tells what it sees. It returns once
// every end was delivered and acknowledged, or with the cause of ctx.
func Client(ctx context.Context, c *client.Client, share Share, orders <-chan Order, tell func(Entry)) error {
	w := &worker{
		share: share, c: c, tell: tell,
		slots: make(chan struct{}, share.Unread), wake: make(chan struct{}, 1),
		prompts: make(map[string]string), stormed: make(map[string]bool), prompt: share.prompt(1), left: -1,
	}
	feed, err := c.Feed(ctx, client.FeedFilter{Session: share.Session})
	if err != nil {
		return fmt.Errorf("watch the session: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var helpers, work sync.WaitGroup
	helpers.Go(func() { w.follow(ctx, feed) })
	helpers.Go(func() { w.obey(ctx, orders) })
	work.Go(func() {
		if err := w.spawnAll(ctx); err != nil {
			cancel(err)
		}
	})
	err = w.readAll(ctx)
	if err == nil {
		work.Wait()
	}
	cancel(err)
	work.Wait()
	helpers.Wait()
	return errors.Join(err, feed.Close())
}

// worker is one client at work.
type worker struct {
	share Share
	c     *client.Client
	tell  func(Entry)
	slots chan struct{} // one for each unread subagent
	wake  chan struct{} // 1-buffered: something may have ended

	mu sync.Mutex
	// prompt is the one that is spawned under; after a storm left more spawns are
	// tried under it, -1 without one. All below is guarded by mu.
	prompt  string
	left    int
	ordinal int
	prompts map[string]string // of each subagent that was asked for
	stormed map[string]bool   // prompts that were cancelled
	spawned int               // spawns answered
	open    int               // accepted and not yet delivered
}

// spawnAll spawns the share.
func (w *worker) spawnAll(ctx context.Context) error {
	numbers := make(chan int)
	errs := make(chan error, spawners)
	var all sync.WaitGroup
	for range min(spawners, w.share.Unread) {
		all.Go(func() {
			for n := range numbers {
				if err := w.spawn(ctx, n); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	err := func() error {
		defer close(numbers)
		for n := w.share.First; n < w.share.First+w.share.Count; n++ {
			select {
			case numbers <- n:
			case err := <-errs:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}()
	all.Wait()
	select {
	case late := <-errs:
		return errors.Join(err, late)
	default:
		return err
	}
}

func (w *worker) spawn(ctx context.Context, n int) error {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	does, id := w.share.Scenario.kind(n), events.NewID()
	prompt := w.choosePrompt(id)
	asked := time.Now()
	_, err := w.c.Spawn(ctx, events.Spawn{
		ParentSessionID: w.share.Session, ID: id, ParentPromptID: prompt, RunInBackground: true,
		Command: w.share.Scenario.command(does), Sandbox: w.share.Scenario.Sandbox,
		Cwd: w.share.Workspace, Workspace: w.share.Workspace, Env: map[string]string{ranVariable: w.share.Ran},
	})
	now := time.Now()
	w.mu.Lock()
	w.spawned++
	if err == nil {
		w.open++
	}
	w.mu.Unlock()
	if err == nil {
		w.tell(Entry{Kind: EntryAccepted, ID: id, Does: does, Asked: asked, At: now})
		w.look()
		return nil
	}
	<-w.slots
	w.look()
	if events.HasCode(err, events.CodePromptCancelled) && w.isStormed(prompt) {
		w.tell(Entry{Kind: EntryRefused, ID: id, Does: does, Asked: asked, At: now})
		return nil
	}
	return fmt.Errorf("spawn %s: %w", id, err)
}

// choosePrompt takes the prompt for the next spawn.
func (w *worker) choosePrompt(id string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.left == 0:
		w.left = -1
		w.ordinal++
		w.prompt = w.share.prompt(w.ordinal + 1)
	case w.left > 0:
		w.left--
	}
	w.prompts[id] = w.prompt
	return w.prompt
}

func (w *worker) isStormed(prompt string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stormed[prompt]
}

// obey carries out orders until they end.
func (w *worker) obey(ctx context.Context, orders <-chan Order) {
	for {
		select {
		case <-ctx.Done():
			return
		case o, ok := <-orders:
			if !ok {
				return
			}
			if o == OrderStorm {
				w.storm(ctx)
			}
		}
	}
}

// storm cancels the prompt of now from several goroutines.
func (w *worker) storm(ctx context.Context) {
	w.mu.Lock()
	prompt := w.prompt
	w.stormed[prompt], w.left = true, stormSpawns
	w.mu.Unlock()
	var all sync.WaitGroup
	for range stormCancels {
		all.Go(func() {
			_, err := w.c.Cancel(ctx, events.Cancel{
				ParentSessionID: w.share.Session, Target: events.CancelTarget{ParentPromptID: prompt},
			})
			if err != nil && ctx.Err() == nil {
				w.tell(Entry{Kind: EntryFault, At: time.Now(), Text: fmt.Sprintf("cancel of prompt %s: %v", prompt, err)})
			}
		})
	}
	all.Wait()
}

// follow wakes the reader when something may have ended.
func (w *worker) follow(ctx context.Context, feed *client.Feed) {
	for {
		e, err := feed.Next(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil || e.State == events.StateCompleted {
			w.look()
		}
		if err != nil && !errors.Is(err, client.ErrFeedGap) {
			return // the reader looks by itself
		}
	}
}

func (w *worker) look() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// readAll reads ends until all were delivered and acknowledged.
func (w *worker) readAll(ctx context.Context) error {
	var unacked []string
	seen := make(map[string]bool)
	ticker := time.NewTicker(readPause)
	defer ticker.Stop()
	lease := readLease.Milliseconds()
	for {
		reply, err := w.c.Completions(ctx, events.Completions{ParentSessionID: w.share.Session, AckIDs: unacked, LeaseMS: &lease})
		if err != nil {
			return fmt.Errorf("read completions: %w", err)
		}
		for _, dedupe := range unacked {
			w.tell(Entry{Kind: EntryAcked, ID: idOf(dedupe), Text: dedupe, At: time.Now()})
		}
		unacked = unacked[:0]
		for _, done := range reply.Value.Completions {
			if err := w.deliver(ctx, done, seen); err != nil {
				return err
			}
			unacked = append(unacked, done.DedupeID)
		}
		if len(unacked) > 0 {
			continue
		}
		if w.finished() {
			return nil
		}
		select {
		case <-w.wake:
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// deliver tells of an end, again if it came again.
func (w *worker) deliver(ctx context.Context, done events.Completion, seen map[string]bool) error {
	end := &End{
		DedupeID: done.DedupeID, Status: done.Status, Reason: done.Reason, ExitCode: done.ExitCode, Signal: done.Signal,
		Bytes: done.Bytes, Created: done.CreatedAt, Started: done.StartedAt, Ended: done.EndedAt,
	}
	if done.Error != nil {
		end.Error = done.Error.Error()
	}
	if p := done.Process; p != nil {
		end.PID, end.StartTime = p.PID, p.StartTime
	}
	at := time.Now()
	first := !seen[done.DedupeID]
	seen[done.DedupeID] = true
	if first && done.StartedAt != nil {
		var err error
		if end.FirstOutput, err = w.firstOutput(ctx, done.SubagentID); err != nil {
			return err
		}
	}
	w.mu.Lock()
	stormed := w.stormed[w.prompts[done.SubagentID]]
	if first {
		w.open--
	}
	w.mu.Unlock()
	w.tell(Entry{Kind: EntryDelivered, ID: done.SubagentID, At: at, Stormed: stormed, End: end})
	if first {
		<-w.slots
	}
	return nil
}

// firstOutput reads when a subagent first put something out.
func (w *worker) firstOutput(ctx context.Context, id string) (*time.Time, error) {
	reply, err := w.c.Transcript(ctx, events.FileRequest{ParentSessionID: w.share.Session, ID: id, Max: 32 << 10})
	if err != nil {
		return nil, fmt.Errorf("read the transcript of %s: %w", id, err)
	}
	for line := range bytes.Lines(reply.Data) {
		var item events.Item
		if err := events.DecodeRecord(line, &item); err != nil {
			return nil, nil // it is longer than what was read
		}
		if item.Kind == events.ItemOutput {
			return &item.At, nil
		}
	}
	return nil, nil
}

// finished reports whether nothing is left to be read.
func (w *worker) finished() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spawned == w.share.Count && w.open <= 0
}

// idOf is the id in a dedupe id.
func idOf(dedupe string) string {
	id, _, _ := strings.Cut(dedupe, ".")
	return id
}
