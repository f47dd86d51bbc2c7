package plan

import (
	"regexp"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// graph resolves the needs of a plan's entries.
type graph struct {
	faults  *faults
	entries []*entry
	// subs are the subagents of each entry, in the order of entries.
	subs [][]*Subagent
	// byName finds an entry or a single subagent of a for_each entry.
	byName map[string]target
}

// target is what a need's name stands for: all of an entry or one of it.
type target struct {
	entry int
	one   *Subagent
}

// names checks that all names are valid and distinct.
func (g *graph) names() {
	g.byName = make(map[string]target)
	claim := func(e *entry, name string, t target) {
		other, taken := g.byName[name]
		if taken {
			g.faults.add(e.path.Key("name"), "the name %q is taken by the entry in line %d", name, g.faults.index.Line(g.entries[other.entry].path))
			return
		}
		g.byName[name] = t
	}
	for i, e := range g.entries {
		group := e.each && strings.Contains(e.name, placeholder)
		switch {
		case e.name == "":
			continue // told already
		case !events.ValidName(e.name) && !group:
			g.faults.add(e.path.Key("name"), "%q is not 1 to 64 of A-Z a-z 0-9 _ . - beginning with a letter or digit", clip(e.name))
			continue
		}
		claim(e, e.name, target{entry: i})
		for _, s := range g.subs[i] {
			if !e.each {
				continue
			}
			if !group && !events.ValidName(s.Name) {
				g.faults.add(e.path.Key("name"), "makes the name %q, which is over 64 bytes", s.Name)
			}
			claim(e, s.Name, target{entry: i, one: s})
		}
	}
}

// resolve fills in Needs and Inputs of every subagent.
func (g *graph) resolve() {
	for i, e := range g.entries {
		listed := make(map[string]bool)
		var needs []*Subagent
		for n, name := range e.needs {
			t, ok := g.byName[name]
			path := e.path.Key("needs").Index(n)
			switch {
			case listed[name]:
				g.faults.add(path, "%q is listed twice", clip(name))
			case !ok:
				g.unknown(e, n)
			case t.one != nil:
				needs = append(needs, t.one)
			default:
				needs = append(needs, g.subs[t.entry]...)
			}
			listed[name] = true
		}
		names, inputs := g.inputs(e, needs)
		for _, s := range g.subs[i] {
			s.Needs, s.Inputs = names, inputs
		}
	}
}

func (g *graph) unknown(e *entry, n int) {
	known := make([]string, 0, len(g.entries))
	for _, other := range g.entries {
		if other != e {
			known = append(known, other.name)
		}
	}
	path := e.path.Key("needs").Index(n)
	if near := nearest(e.needs[n], known); near != "" {
		g.faults.add(path, "there is no entry %q; did you mean %s?", clip(e.needs[n]), near)
		return
	}
	g.faults.add(path, "there is no entry %q", clip(e.needs[n]))
}

// maxInputName is what the contract allows for a name in a spawn's inputs.
const maxInputName = 64

var notInVariable = regexp.MustCompile(`[^A-Za-z0-9_]`)

// InputVariable returns the end of the variable HAYWARD_INPUT_<...> under which
// a dependent finds the output of the subagent called name.
func InputVariable(name string) string {
	v := notInVariable.ReplaceAllString(name, "_")
	if v != "" && v[0] >= '0' && v[0] <= '9' {
		v = "_" + v
	}
	return v
}

// inputs returns the needs by name and by variable.
func (g *graph) inputs(e *entry, needs []*Subagent) (names []string, inputs map[string]string) {
	path := e.path.Key("needs")
	seen := make(map[*Subagent]bool)
	for _, s := range needs {
		if seen[s] {
			continue // named once itself and once through its entry
		}
		seen[s] = true
		names = append(names, s.Name)
		v := InputVariable(s.Name)
		if other, taken := inputs[v]; taken {
			g.faults.add(path, "%s and %s would share the variable HAYWARD_INPUT_%s", other, s.Name, v)
			continue
		}
		if inputs == nil {
			inputs = make(map[string]string)
		}
		inputs[v] = s.Name
		if len(v) > maxInputName {
			g.faults.add(path, "the variable HAYWARD_INPUT_%s of %s is too long", v, s.Name)
		}
	}
	if len(names) > events.MaxInputs {
		g.faults.add(path, "stands for %d subagents, the limit is %d", len(names), events.MaxInputs)
	}
	return names, inputs
}

// cycles reports each cycle of entries once, in full.
func (g *graph) cycles() {
	const (
		unseen = iota
		open
		closed
	)
	state := make([]int, len(g.entries))
	var trail []int
	var visit func(i int)
	visit = func(i int) {
		state[i] = open
		trail = append(trail, i)
		for n, name := range g.entries[i].needs {
			t, ok := g.byName[name]
			if !ok {
				continue
			}
			switch state[t.entry] {
			case unseen:
				visit(t.entry)
			case open:
				g.faults.add(g.entries[i].path.Key("needs").Index(n), "the needs form a cycle: %s", g.cycle(trail, t.entry))
			}
		}
		trail = trail[:len(trail)-1]
		state[i] = closed
	}
	for i := range g.entries {
		if state[i] == unseen {
			visit(i)
		}
	}
}

// cycle writes the end of trail from entry first on as a -> b -> a.
func (g *graph) cycle(trail []int, first int) string {
	for len(trail) > 0 && trail[0] != first {
		trail = trail[1:]
	}
	var b strings.Builder
	for _, i := range trail {
		b.WriteString(g.entries[i].name + " -> ")
	}
	b.WriteString(g.entries[first].name)
	return b.String()
}

// show checks that at most one entry asks for its output, and that nothing
// comes after it.
func (g *graph) show() {
	needed := make(map[int]bool)
	for _, e := range g.entries {
		for _, name := range e.needs {
			if t, ok := g.byName[name]; ok {
				needed[t.entry] = true
			}
		}
	}
	first := -1
	for i, e := range g.entries {
		path := e.path.Key("show")
		switch {
		case !e.show:
		case e.each:
			g.faults.add(path, "an entry with for_each has no single output to show")
		case needed[i]:
			g.faults.add(path, "only an entry that no other needs can be shown")
		case first >= 0:
			g.faults.add(path, "only one entry can be shown; %s asks for it too", g.entries[first].name)
		default:
			first = i
		}
	}
}
