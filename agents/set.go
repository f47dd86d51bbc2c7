package agents

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// Set holds the definitions that are in force in one place. It does not change
// once it is loaded.
type Set struct {
	// Definitions are those in force, by name.
	Definitions []Definition
	// Shadowed are those that a stronger one of the same name hides.
	Shadowed []Definition
	// Faults are what the files' authors should know, in the order of reading.
	Faults []Fault
	// broken has the file whose error takes a name away.
	broken map[string]Fault
}

// Find returns the definition of a type, in any case of its letters.
func (s *Set) Find(name string) (*Definition, *events.Error) {
	name = strings.ToLower(name)
	if fault, ok := s.broken[name]; ok {
		return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "agent type %s: %s", name, fault).
			WithRemedy("correct the file; see: hayward agents check")
	}
	i, found := slices.BinarySearchFunc(s.Definitions, name, func(d Definition, n string) int { return cmp.Compare(d.Name, n) })
	if !found {
		return nil, events.Errorf(events.CodeUnknownType, events.LayerGate, "there is no agent type %q", name).
			WithDetail("known", strings.Join(append([]string{TypeCommand}, s.Names()...), ", ")).
			WithRemedy("see: hayward agents")
	}
	return &s.Definitions[i], nil
}

// Names lists the types in force.
func (s *Set) Names() []string {
	names := make([]string, len(s.Definitions))
	for i, d := range s.Definitions {
		names[i] = d.Name
	}
	return names
}

// loader builds a set; what is added first is stronger.
type loader struct {
	set  Set
	held map[string]Source // who has a name
	// weak are the definitions of a project that is not trusted, which come last.
	weak []Parsed
}

// add takes over what came out of a file.
func (l *loader) add(p Parsed, source Source) {
	l.set.Faults = append(l.set.Faults, p.Faults...)
	if p.Name == "" {
		return
	}
	if source.Untrusted {
		l.weak = append(l.weak, p)
		return
	}
	l.take(p, source)
}

func (l *loader) take(p Parsed, source Source) {
	holder, taken := l.held[p.Name]
	switch {
	case taken && holder.Scope == source.Scope && holder.dir() == source.dir():
		l.set.Faults = append(l.set.Faults, Fault{Severity: SeverityWarning, File: source.Path, Key: "name",
			Message: "the type " + p.Name + " is defined by " + holder.String() + " already; this one is not used"})
		fallthrough
	case taken:
		if p.Definition != nil {
			l.set.Shadowed = append(l.set.Shadowed, *p.Definition)
		}
		return
	}
	l.held[p.Name] = source
	if p.Definition == nil {
		l.set.broken[p.Name] = *firstError(p.Faults)
		return
	}
	l.set.Definitions = append(l.set.Definitions, *p.Definition)
}

// finish adds what an untrusted project may add, and sorts.
func (l *loader) finish() *Set {
	for _, p := range l.weak {
		if p.Definition == nil {
			// It hides nothing, but whoever asks for it is told why it is not there.
			if _, taken := l.held[p.Name]; !taken {
				l.held[p.Name], l.set.broken[p.Name] = Source{Untrusted: true}, *firstError(p.Faults)
			}
			continue
		}
		source := p.Definition.Source
		if holder, taken := l.held[p.Name]; taken && !holder.Untrusted {
			l.set.Faults = append(l.set.Faults, Fault{Severity: SeverityWarning, File: source.Path, Key: "name",
				Message: "the type " + p.Name + " stays that of " + holder.String() + ": this project is not trusted and can only add names"})
		}
		narrow, faults := p.Definition.Narrow()
		l.set.Faults = append(l.set.Faults, faults...)
		l.take(Parsed{Definition: &narrow, Name: p.Name}, source)
	}
	byName := func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(l.set.Definitions, byName)
	slices.SortStableFunc(l.set.Shadowed, byName)
	return &l.set
}
