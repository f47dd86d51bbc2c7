package main

import (
	"cmp"
	"fmt"

	"github.com/hayward-dev/hayward/events"
)

// usageOf is what a subagent used of models itself, and with all that is nested in
// it: at its end, or so far.
func usageOf(s events.Snapshot) (own, tree *events.Usage) {
	own, tree = s.Usage, s.TreeUsage
	if p := s.Progress; p != nil {
		own, tree = cmp.Or(own, p.Usage), cmp.Or(tree, p.TreeUsage)
	}
	return own, tree
}

// shownTokens are the tokens of a subagent in a tree: its own, and behind a plus
// those of what is nested in it.
func shownTokens(s events.Snapshot) string {
	own, tree := usageOf(s)
	var n, all int64
	if own != nil {
		n = own.Total()
	}
	if tree != nil {
		all = tree.Total()
	}
	switch {
	case n == 0 && all == 0:
		return ""
	case all <= n:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d+%d", n, all-n)
}

// tokens shows what was used of models.
func (d *details) tokens(s events.Snapshot) {
	own, tree := usageOf(s)
	show := func(name string, u *events.Usage) {
		if u != nil {
			d.add(name, "%d (%d read, %d written, %d from and %d into a cache)",
				u.Total(), u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheCreationTokens)
		}
	}
	show("tokens", own)
	show("tokens of its tree", tree)
}
