package plan

import (
	"fmt"
	"sort"
	"strings"
)

// drawnEntry is an entry of the plan as one node of the drawing.
type drawnEntry struct {
	name string
	subs []int
	wave int
	// needs are the names needed by any of its subagents, shortened to the entry's
	// where all of an entry are needed.
	needs []string
	// below are the entries drawn under it.
	below []*drawnEntry
}

// Draw writes the graph as a tree: each entry once, under the last of its needs,
// with the others named beside it.
func (c Check) Draw() string {
	entries := c.entries()
	byName := make(map[string]*drawnEntry, len(entries))
	for _, e := range entries {
		byName[e.name] = e
		for _, s := range e.subs {
			byName[c.Plan.Subagents[s].Name] = e
		}
	}
	var roots []*drawnEntry
	for _, e := range entries {
		var last *drawnEntry
		for _, need := range e.needs {
			if n := byName[need]; last == nil || n.wave >= last.wave {
				last = n
			}
		}
		if last == nil {
			roots = append(roots, e)
			continue
		}
		last.below = append(last.below, e)
	}
	waves := 0
	for _, w := range c.Waves {
		waves = max(waves, w)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", printable(c.Plan.Name), countOf(len(c.Plan.Subagents)))
	if waves > 1 {
		fmt.Fprintf(&b, " in %d waves", waves)
	}
	if c.Plan.Jobs > 0 {
		fmt.Fprintf(&b, ", %d at once", c.Plan.Jobs)
	}
	if c.Plan.FailFast {
		b.WriteString(", fail_fast")
	}
	b.WriteString("\n")
	for _, e := range roots {
		c.draw(&b, e, "", "", byName)
	}
	return b.String()
}

// draw writes e behind lead, and what is below it behind indent.
func (c Check) draw(b *strings.Builder, e *drawnEntry, lead, indent string, byName map[string]*drawnEntry) {
	b.WriteString(lead + c.label(e, byName) + "\n")
	for i, child := range e.below {
		if i == len(e.below)-1 {
			c.draw(b, child, indent+"└─ ", indent+"   ", byName)
		} else {
			c.draw(b, child, indent+"├─ ", indent+"│  ", byName)
		}
	}
}

// label is what is said of an entry: its name, how many it stands for, and the
// needs that the tree does not show.
func (c Check) label(e *drawnEntry, byName map[string]*drawnEntry) string {
	label := e.name
	if first := c.Plan.Subagents[e.subs[0]]; len(e.subs) > 1 || first.Name != e.name {
		names := make([]string, len(e.subs))
		for i, s := range e.subs {
			names[i] = c.Plan.Subagents[s].Name
		}
		label += fmt.Sprintf(" × %d (%s)", len(e.subs), enumerate(names))
	}
	var others []string
	for _, need := range e.needs {
		above := false
		for _, child := range byName[need].below {
			above = above || child == e
		}
		// The one it hangs under is seen, unless only a part of it is needed.
		if !above || need != byName[need].name {
			others = append(others, need)
		}
	}
	if len(others) > 0 {
		label += "  needs also " + enumerate(others)
		if len(others) == len(e.needs) {
			label = strings.Replace(label, "  needs also ", "  needs ", 1)
		}
	}
	return label
}

// entries groups the subagents by entry, needed ones first.
func (c Check) entries() []*drawnEntry {
	var entries []*drawnEntry
	byName := make(map[string]*drawnEntry)
	size := make(map[string]int)
	entryOf := make(map[string]string)
	for i, s := range c.Plan.Subagents {
		e := byName[s.Entry]
		if e == nil {
			e = &drawnEntry{name: s.Entry}
			byName[s.Entry] = e
			entries = append(entries, e)
		}
		e.subs = append(e.subs, i)
		e.wave = max(e.wave, c.Waves[i])
		size[s.Entry]++
		entryOf[s.Name] = s.Entry
	}
	for _, e := range entries {
		// All subagents of an entry have the same needs.
		e.needs = folded(c.Plan.Subagents[e.subs[0]].Needs, entryOf, size)
	}
	sort.SliceStable(entries, func(a, b int) bool { return entries[a].wave < entries[b].wave })
	return entries
}

// folded returns names with all those of one entry replaced by the entry's.
func folded(names []string, entryOf map[string]string, size map[string]int) []string {
	count := make(map[string]int)
	for _, n := range names {
		count[entryOf[n]]++
	}
	var out []string
	told := make(map[string]bool)
	for _, n := range names {
		entry := entryOf[n]
		if count[entry] < size[entry] {
			out = append(out, n)
		} else if !told[entry] {
			told[entry] = true
			out = append(out, entry)
		}
	}
	return out
}
