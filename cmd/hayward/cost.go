package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// shownCost is a cost for people. A model without a price is named: what it cost
// is not known, which is not nothing.
func shownCost(c *events.Cost) string {
	switch {
	case c == nil:
		return ""
	case c.USD == nil:
		return "no price for " + strings.Join(c.Unpriced, ", ")
	case len(c.Unpriced) > 0:
		return fmt.Sprintf("%.4f USD, and no price for %s", *c.USD, strings.Join(c.Unpriced, ", "))
	}
	return fmt.Sprintf("%.4f USD", *c.USD)
}

// cellCost is a cost in a table: a plus says that a part of it is not known, a
// question mark that all of it is not.
func cellCost(s events.Snapshot) string {
	c := costOf(s)
	switch {
	case c == nil:
		return ""
	case c.USD == nil:
		return "?"
	case len(c.Unpriced) > 0:
		return fmt.Sprintf("$%.4f+", *c.USD)
	}
	return fmt.Sprintf("$%.4f", *c.USD)
}

// costOf is what an agent cost, or has cost so far.
func costOf(s events.Snapshot) *events.Cost {
	switch {
	case s.Agent != nil:
		return s.Agent.Cost
	case s.Progress != nil && s.Progress.Agent != nil:
		return s.Progress.Agent.Cost
	}
	return nil
}

// costColumn is where snapshot tables have the cost.
const costColumn = 5

// addCosts adds the column of costs to a table of the snapshots, where one of them
// has a cost.
func (t *table) addCosts(all []events.Snapshot) {
	if !slices.ContainsFunc(all, func(s events.Snapshot) bool { return costOf(s) != nil }) {
		return
	}
	t.header = slices.Insert(slices.Clone(t.header), costColumn, "COST")
	for i, s := range all {
		cell := cellCost(s)
		if cell == "" {
			cell = "-"
		}
		t.rows[i] = slices.Insert(t.rows[i], costColumn, cell)
	}
}
