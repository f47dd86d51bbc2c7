package gateway

import (
	"context"
	"fmt"
	"sync"

	"github.com/hayward-dev/hayward/events"
)

// Lineage says what the calls of a subagent count for beside itself.
type Lineage struct {
	// Above are the subagents above it, its spawner first; none for one of a client.
	Above []string
	// Session and Prompt are those of the whole tree. Prompt may be empty.
	Session, Prompt string
}

// root is the top of the tree of the subagent id.
func (l Lineage) root(id string) string {
	if n := len(l.Above); n > 0 {
		return l.Above[n-1]
	}
	return id
}

type promptKey struct{ session, prompt string }

// accounts are the sums that budgets are held against and that a running subagent
// shows. Each call is added once to each of them; the calls themselves are in the
// [Ledger].
type accounts struct {
	mu sync.Mutex
	// own is what each subagent used, tree what it and all below it did, lineage where
	// it stands. Guarded by mu, as all that follows.
	own, tree map[string]events.Usage
	lineage   map[string]Lineage
	// prompts are the sums of prompts; kept only where they have a budget.
	prompts map[promptKey]events.Usage
	// byPrompt tells that prompts have a budget.
	byPrompt bool
}

func newAccounts(byPrompt bool) *accounts {
	return &accounts{
		own: make(map[string]events.Usage), tree: make(map[string]events.Usage), lineage: make(map[string]Lineage),
		prompts: make(map[promptKey]events.Usage), byPrompt: byPrompt,
	}
}

// open enters a subagent with what it used so far, unless ctx has ended. A subagent's
// connections are ended before it is closed, so with theirs none is entered again
// after that, and counted twice above.
func (a *accounts) open(ctx context.Context, id string, l Lineage, so events.Usage) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.own[id]; known || ctx.Err() != nil {
		return ctx.Err()
	}
	a.lineage[id] = l
	a.add(id, so)
	return nil
}

// add counts u for a subagent that is entered. The caller holds mu.
func (a *accounts) add(id string, u events.Usage) {
	a.own[id] = a.own[id].Add(u)
	a.tree[id] = a.tree[id].Add(u)
	a.addAbove(a.lineage[id], u)
}

// addAbove counts u for what is above a subagent. The caller holds mu.
func (a *accounts) addAbove(l Lineage, u events.Usage) {
	for _, above := range l.Above {
		a.tree[above] = a.tree[above].Add(u)
	}
	a.addPrompt(l, u)
}

// addPrompt counts u for its prompt. The caller holds mu.
func (a *accounts) addPrompt(l Lineage, u events.Usage) {
	if a.byPrompt && l.Prompt != "" {
		key := promptKey{l.Session, l.Prompt}
		a.prompts[key] = a.prompts[key].Add(u)
	}
}

// count counts u, and returns false for a subagent that is not entered.
func (a *accounts) count(id string, u events.Usage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.own[id]; !known {
		return false
	}
	a.add(id, u)
	return true
}

// countLate counts what a subagent used that was taken out already. It was entered,
// so what is above it has a sum unless that was taken out too.
func (a *accounts) countLate(l Lineage, u events.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, above := range l.Above {
		if sum, ok := a.tree[above]; ok {
			a.tree[above] = sum.Add(u)
		}
	}
	a.addPrompt(l, u)
}

// known returns what a subagent used, if it was entered.
func (a *accounts) known(id string) (u events.Usage, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ok = a.own[id]
	return u, ok
}

// sums returns what counts for a subagent: itself, its whole tree, its prompt.
func (a *accounts) sums(id string) (own, tree, prompt events.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lineage[id]
	return a.own[id], a.tree[l.root(id)], a.prompts[promptKey{l.Session, l.Prompt}]
}

// shown returns what a subagent and all below it used.
func (a *accounts) shown(id string) (own, tree events.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own[id], a.tree[id]
}

// close takes a subagent that has ended out; what it used stays in the sums above it.
func (a *accounts) close(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.own, id)
	delete(a.tree, id)
	delete(a.lineage, id)
}

// Restore counts what an ended subagent used, of which an earlier process knew: for
// those above it that live, and for its prompt.
func (g *Gateway) Restore(id string, l Lineage, used events.Usage) {
	_ = g.accounts.open(context.Background(), id, l, used) // which does not end
	g.accounts.close(id)
}

// Reopen counts what a subagent that lives used before, if it did.
func (g *Gateway) Reopen(id string, l Lineage) {
	if used := g.recorded(id); used != (events.Usage{}) {
		_ = g.accounts.open(context.Background(), id, l, used) // which does not end
	}
}

// Shown is what a live subagent has used so far, and that with all below it.
func (g *Gateway) Shown(id string) (own, tree events.Usage) { return g.accounts.shown(id) }

// enter makes sure that a subagent is entered, for a connection whose context ctx is.
func (g *Gateway) enter(ctx context.Context, id string) error {
	if _, ok := g.accounts.known(id); ok {
		return nil
	}
	var l Lineage
	if g.opts.Lineage != nil {
		var err error
		if l, err = g.opts.Lineage(id); err != nil {
			return fmt.Errorf("it is not known what budget %s counts against: %w", id, err)
		}
	}
	if err := g.accounts.open(ctx, id, l, g.recorded(id)); err != nil {
		return fmt.Errorf("the connection of %s has ended: %w", id, err)
	}
	return nil
}

// spent says which budget of a subagent is used up, or nothing. What is under way is
// not known yet, so calls at the same time may go over a budget together.
func (g *Gateway) spent(id string) string {
	own, tree, prompt := g.accounts.sums(id)
	for _, b := range []struct {
		of        string
		most, use int64
	}{
		{"", g.opts.MaxTokens, own.Total()},
		{" of its tree", g.opts.MaxTreeTokens, tree.Total()},
		{" of its prompt", g.opts.MaxPromptTokens, prompt.Total()},
	} {
		if b.most > 0 && b.use >= b.most {
			return fmt.Sprintf("the budget%s of %d tokens is used up: %d", b.of, b.most, b.use)
		}
	}
	return ""
}
