package coordinator

import (
	"cmp"
	"slices"
)

// ordered is a sorted slice of subagents. Inserting at the end and removing at
// the front are cheap, which is what nearly always happens.
type ordered struct {
	items   []*subagent
	compare func(a, b *subagent) int
}

// The orders in use. The creation order breaks ties, so that each is total.
func byCreation(a, b *subagent) int { return cmp.Compare(a.ord, b.ord) }

func byEndOrder(a, b *subagent) int {
	return cmp.Or(cmp.Compare(a.rec.EndOrder, b.rec.EndOrder), byCreation(a, b))
}

func byEndTime(a, b *subagent) int {
	return cmp.Or(a.rec.EndedAt.Compare(*b.rec.EndedAt), byCreation(a, b))
}

// insert adds e unless it is there.
func (o *ordered) insert(e *subagent) {
	if n := len(o.items); n == 0 || o.compare(o.items[n-1], e) < 0 {
		o.items = append(o.items, e)
		return
	}
	if i, found := slices.BinarySearchFunc(o.items, e, o.compare); !found {
		o.items = slices.Insert(o.items, i, e)
	}
}

// remove takes e out if it is there.
func (o *ordered) remove(e *subagent) {
	i, found := slices.BinarySearchFunc(o.items, e, o.compare)
	switch {
	case !found:
	case i == 0:
		o.items[0] = nil
		o.items = o.items[1:]
	default:
		o.items = slices.Delete(o.items, i, i+1)
	}
	if len(o.items) == 0 {
		o.items = nil
	}
}

// from returns what is at or behind the first item for which at is true; at must
// be monotonic.
func (o *ordered) from(at func(*subagent) bool) []*subagent {
	i, _ := slices.BinarySearchFunc(o.items, true, func(e *subagent, _ bool) int {
		if at(e) {
			return 0
		}
		return -1
	})
	return o.items[i:]
}
