package coordinator

import (
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// scope is what a caller may see.
type scope struct {
	// session limits to one session unless it is empty.
	session string
	// parent limits to the descendants of a subagent unless it is empty.
	parent string
}

// scopeOf is the scope of a caller that named session. What a child sees comes
// from the child, never from the request.
func scopeOf(c Caller, session string) scope {
	if c.isChild() {
		return scope{session: c.Session, parent: c.Principal}
	}
	return scope{session: session}
}

// sees reports whether e is in sc.
func (x *index) sees(sc scope, e *subagent) bool {
	if sc.session != "" && e.rec.ParentSessionID != sc.session {
		return false
	}
	return sc.parent == "" || x.descends(e, sc.parent)
}

// descends reports whether e was spawned by id or by a descendant of it. Depth
// is bounded by the limit that every spawn passed.
func (x *index) descends(e *subagent, id string) bool {
	for e != nil && e.rec.ParentID != "" {
		if e.rec.ParentID == id {
			return true
		}
		e = x.byID[e.rec.ParentID]
	}
	return false
}

// resolve finds what ref names in sc: an id, else a name, else an id's ending.
// Nothing found is nil; several are [events.CodeAmbiguousID].
func (x *index) resolve(sc scope, ref string) (*subagent, *events.Error) {
	if events.ValidID(ref) {
		if e := x.byID[ref]; e != nil && x.sees(sc, e) {
			return e, nil
		}
		return nil, nil
	}
	if found := x.withName(sc, ref); len(found) > 0 {
		return one(ref, found)
	}
	if len(ref) < tailLength {
		return nil, nil
	}
	var found []*subagent
	for _, e := range x.byTail[ref[len(ref)-tailLength:]] {
		if strings.HasSuffix(e.id, ref) && x.sees(sc, e) {
			found = append(found, e)
		}
	}
	return one(ref, found)
}

// withName returns the subagents that name may mean. In one session it means the
// live one, else the youngest; across sessions a single live one, else all.
func (x *index) withName(sc scope, name string) []*subagent {
	if sc.parent != "" {
		// Its own first, then what is below them.
		if e := x.named[nameKey{sc.parent, name}]; e != nil {
			return []*subagent{e}
		}
		sc.session = ""
	}
	if sc.session != "" {
		if e := x.named[nameKey{sc.session, name}]; e != nil && x.sees(sc, e) {
			return []*subagent{e}
		}
		return nil
	}
	var live, found []*subagent
	for _, e := range x.byName[name] {
		if !x.sees(sc, e) {
			continue
		}
		found = append(found, e)
		if e.rec.Live() {
			live = append(live, e)
		}
	}
	if len(live) == 1 {
		return live
	}
	return found
}

func one(ref string, found []*subagent) (*subagent, *events.Error) {
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	const shown = 5
	ids := make([]string, 0, shown)
	for _, e := range found[:min(len(found), shown)] {
		ids = append(ids, e.id)
	}
	err := events.Errorf(events.CodeAmbiguousID, events.LayerGate, "%q fits %d subagents", ref, len(found)).
		WithRemedy("give more of the id, or the session").
		WithDetail("ref", ref).WithDetail("candidates", strings.Join(ids, " "))
	return nil, err
}
