package coordinator

import "github.com/hayward-dev/hayward/events"

// inbox is what one owner has to read, and its prompts. A session owns the
// subagents that clients spawned in it, a subagent those that it spawned itself:
// neither reads the ends of the other, and a turn of the one is none of the other.
type inbox struct {
	// unread are the durable ends that nobody acknowledged; deliverable, in end
	// order, those of them that no reader has leased.
	unread      map[*subagent]struct{}
	deliverable ordered
	prompts     map[string]*prompt
	// members are all that a subagent spawned. Those of a session are in its all.
	members map[*subagent]struct{}
}

func newInbox() inbox {
	return inbox{
		unread: make(map[*subagent]struct{}), deliverable: ordered{compare: byEndOrder}, prompts: make(map[string]*prompt),
	}
}

// enterInbox gives e, whose session is set, its place with its owner.
func (x *index) enterInbox(e *subagent) {
	r := e.rec
	e.inbox = &e.session.inbox
	if r.ParentID != "" {
		if x.nested[r.ParentID] == nil {
			box := newInbox()
			x.nested[r.ParentID] = &box
		}
		e.inbox = x.nested[r.ParentID]
		put(&e.inbox.members, e)
	}
	turn := turnOf(r)
	if turn == "" {
		return
	}
	p := e.inbox.prompts[turn]
	if p == nil {
		p = &prompt{first: e.ord}
		e.inbox.prompts[turn] = p
	}
	p.size++
	e.prompt = p
}

// leaveInbox takes e, which is removed, from its owner.
func (x *index) leaveInbox(e *subagent) {
	if p := e.prompt; p != nil {
		delete(p.unsettled, e)
		if p.size--; p.size == 0 {
			delete(e.inbox.prompts, turnOf(e.rec))
		}
	}
	if id := e.rec.ParentID; id != "" {
		if delete(e.inbox.members, e); len(e.inbox.members) == 0 {
			delete(x.nested, id)
		}
	}
}

// inboxOf returns what a caller that named session reads, or nil if there is none.
func (x *index) inboxOf(c Caller, session string) *inbox {
	if c.isChild() {
		return x.nested[c.Principal]
	}
	if g := x.sessions[session]; g != nil {
		return &g.inbox
	}
	return nil
}

// turnOf is the turn of r's owner that asked for it.
func turnOf(r *events.Record) string {
	if r.ParentID != "" {
		return r.SpawnerPromptID
	}
	return r.ParentPromptID
}

// ownerOf is within what a name is unique.
func ownerOf(r *events.Record) string {
	if r.ParentID != "" {
		return r.ParentID
	}
	return r.ParentSessionID
}
