package coordinator

import "slices"

// session is what a parent session owns. Like everything in an index it is
// derived from records; none of it is durable by itself.
type session struct {
	id string
	// all holds every subagent known, live those whose end is not durable yet.
	all, live ordered
	// queue holds the queued ones, first in first out.
	queue []*subagent
	// slots holds those that have a slot.
	slots map[*subagent]struct{}
	// ended are those whose end is durable, by the time of the end.
	ended ordered
	// inbox is for those that clients spawned.
	inbox
	// read are those that were read, by the time of the end; leaving are being
	// removed.
	read    ordered
	leaving map[*subagent]struct{}
	// ready tells that the session is in the round robin, stalled that it waits for
	// a type to have room.
	ready, stalled bool
}

// prompt is one turn of a session, or of a subagent that spawns.
type prompt struct {
	// first is the ordinal of its first subagent, size how many it has.
	first     uint64
	size      int
	live      map[*subagent]struct{}
	unread    map[*subagent]struct{}
	unsettled map[*subagent]struct{} // ended, usage unknown
}

// nameKey is a name of an owner: see ownerOf.
type nameKey struct{ owner, name string }

type promptKey struct{ session, prompt string }

// tailLength is the shortest id ending that may refer to a subagent.
const tailLength = 4

// index finds subagents.
type index struct {
	byID     map[string]*subagent
	sessions map[string]*session
	all      ordered
	live     ordered
	ended    ordered
	// named holds the youngest of a name of an owner, byName one for each owner that
	// has the name.
	named  map[nameKey]*subagent
	byName map[string][]*subagent
	// byTail holds what ends in the same tailLength characters.
	byTail map[string][]*subagent
	// children are the live subagents that a subagent spawned.
	children map[string]map[*subagent]struct{}
	// nested has an inbox for each subagent that spawned others.
	nested map[string]*inbox
	// users are the live subagents that need the files of a finished one.
	users map[string]map[*subagent]struct{}
}

func newIndex() index {
	return index{
		byID:     make(map[string]*subagent),
		sessions: make(map[string]*session),
		all:      ordered{compare: byCreation},
		live:     ordered{compare: byCreation},
		ended:    ordered{compare: byEndTime},
		named:    make(map[nameKey]*subagent),
		byName:   make(map[string][]*subagent),
		byTail:   make(map[string][]*subagent),
		children: make(map[string]map[*subagent]struct{}),
		nested:   make(map[string]*inbox),
		users:    make(map[string]map[*subagent]struct{}),
	}
}

// grow makes room for n subagents in an empty index.
func (x *index) grow(n int) {
	if len(x.byID) > 0 {
		return
	}
	x.byID = make(map[string]*subagent, n)
	x.byTail = make(map[string][]*subagent, n)
	x.all.items = make([]*subagent, 0, n)
	x.ended.items = make([]*subagent, 0, n)
}

// session returns the session id, made if it is new.
func (x *index) session(id string) *session {
	if g := x.sessions[id]; g != nil {
		return g
	}
	g := &session{
		id:    id,
		all:   ordered{compare: byCreation},
		live:  ordered{compare: byCreation},
		slots: make(map[*subagent]struct{}),
		ended: ordered{compare: byEndTime},
		inbox: newInbox(),
		read:  ordered{compare: byEndTime},
	}
	x.sessions[id] = g
	return g
}

// add enters e, which has its record and ordinal.
func (x *index) add(e *subagent) {
	r := e.rec
	g := x.session(r.ParentSessionID)
	e.session = g
	x.byID[e.id] = e
	x.all.insert(e)
	g.all.insert(e)
	tail := e.id[len(e.id)-tailLength:]
	x.byTail[tail] = append(x.byTail[tail], e)
	x.enterInbox(e)
	if r.Name != "" {
		x.addName(e)
	}
	x.setLive(e, true)
}

func (x *index) addName(e *subagent) {
	key := nameKey{ownerOf(e.rec), e.rec.Name}
	list := x.byName[key.name]
	if old := x.named[key]; old != nil {
		e.nameSlot = old.nameSlot
		list[e.nameSlot] = e
	} else {
		e.nameSlot = len(list)
		x.byName[key.name] = append(list, e)
	}
	x.named[key] = e
}

// setLive enters e among the live ones, or takes it out once its end is durable.
func (x *index) setLive(e *subagent, live bool) {
	g, p := e.session, e.prompt
	if live {
		x.live.insert(e)
		g.live.insert(e)
		if p != nil {
			put(&p.live, e)
		}
		if e.rec.ParentID != "" {
			link(x.children, e.rec.ParentID, e)
		}
		for _, id := range uses(e) {
			link(x.users, id, e)
		}
		return
	}
	x.live.remove(e)
	g.live.remove(e)
	x.ended.insert(e)
	g.ended.insert(e)
	if p != nil {
		delete(p.live, e)
		if e.rec.StartedAt != nil && e.rec.Exit == nil {
			put(&p.unsettled, e)
		}
	}
	unlink(x.children, e.rec.ParentID, e)
	for _, id := range uses(e) {
		unlink(x.users, id, e)
	}
}

// uses are the ids of finished subagents whose files e needs while it lives.
func uses(e *subagent) (ids []string) {
	if e.rec.ResumedFrom != "" {
		ids = append(ids, e.rec.ResumedFrom)
	}
	if e.spec != nil {
		for _, id := range e.spec.Request.Inputs {
			ids = append(ids, id)
		}
	}
	return ids
}

func link(of map[string]map[*subagent]struct{}, id string, e *subagent) {
	set := of[id]
	put(&set, e)
	of[id] = set
}

func unlink(of map[string]map[*subagent]struct{}, id string, e *subagent) {
	if set := of[id]; set != nil {
		delete(set, e)
		if len(set) == 0 {
			delete(of, id)
		}
	}
}

// drop takes the finished e out of every index.
func (x *index) drop(e *subagent) {
	g := e.session
	delete(x.byID, e.id)
	x.all.remove(e)
	x.ended.remove(e)
	g.all.remove(e)
	g.ended.remove(e)
	tail := e.id[len(e.id)-tailLength:]
	x.byTail[tail] = without(x.byTail[tail], e)
	if len(x.byTail[tail]) == 0 {
		delete(x.byTail, tail)
	}
	if e.rec.Name != "" {
		x.dropName(e)
	}
	x.leaveInbox(e)
	if len(g.all.items) == 0 && !g.ready && !g.stalled {
		delete(x.sessions, g.id)
	}
}

// dropName gives e's name to the youngest left that had it, or to nobody.
func (x *index) dropName(e *subagent) {
	key := nameKey{ownerOf(e.rec), e.rec.Name}
	if x.named[key] != e {
		return
	}
	for i := len(e.session.all.items) - 1; i >= 0; i-- {
		if other := e.session.all.items[i]; other.rec.Name == key.name && ownerOf(other.rec) == key.owner {
			x.addName(other)
			return
		}
	}
	delete(x.named, key)
	list := x.byName[key.name]
	last := list[len(list)-1]
	list[e.nameSlot], last.nameSlot = last, e.nameSlot
	list[len(list)-1] = nil
	if list = list[:len(list)-1]; len(list) == 0 {
		delete(x.byName, key.name)
		return
	}
	x.byName[key.name] = list
}

func without(list []*subagent, e *subagent) []*subagent {
	if i := slices.Index(list, e); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// setUnread enters e into or takes it out of what its owner has to read, and what
// was read.
func (x *index) setUnread(e *subagent) {
	g, box, p := e.session, e.inbox, e.prompt
	unread := e.endDurable() && e.rec.ReadAt == nil && !e.leaving
	if e.endDurable() && e.rec.ReadAt != nil && !e.leaving {
		g.read.insert(e)
	} else if e.endDurable() {
		g.read.remove(e)
	}
	if unread {
		put(&box.unread, e)
		if p != nil {
			put(&p.unread, e)
		}
	} else {
		delete(box.unread, e)
		if p != nil {
			delete(p.unread, e)
		}
	}
	if unread && e.lease == nil {
		box.deliverable.insert(e)
	} else if e.rec.EndOrder > 0 {
		box.deliverable.remove(e)
	}
}

// put adds e to a set that may not be made yet.
func put(set *map[*subagent]struct{}, e *subagent) {
	if *set == nil {
		*set = make(map[*subagent]struct{})
	}
	(*set)[e] = struct{}{}
}
