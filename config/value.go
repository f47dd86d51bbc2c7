package config

import (
	"fmt"
)

// Layer is a place that values come from, the strongest first.
type Layer int

// The layers.
const (
	LayerPin Layer = iota
	LayerFlag
	LayerEnvironment
	LayerProject
	LayerUser
	LayerSystem
	LayerDefault
	layers
)

var layerNames = [layers]string{"pin", "flag", "environment", "project", "user", "system", "default"}

// String is the layer's name.
func (l Layer) String() string { return layerNames[l] }

// MarshalText implements [encoding.TextMarshaler].
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Origin is where a value comes from.
type Origin struct {
	Layer Layer `json:"layer"`
	// File and Line are the place in a file.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitzero"`
	// Name is the flag with its dashes, or the variable with its dollar sign.
	Name string `json:"name,omitempty"`
}

// String is the origin for people: "default", "flag --sandbox",
// "$HAYWARD_SANDBOX" or FILE:LINE, a pin marked as such.
func (o Origin) String() string {
	switch o.Layer {
	case LayerDefault:
		return "default"
	case LayerFlag:
		return "flag " + o.Name
	case LayerEnvironment:
		return o.Name
	}
	place := fmt.Sprintf("%s:%d", o.File, o.Line)
	if o.Layer == LayerPin {
		return "pinned by " + place
	}
	return place
}

// Setting is one value of one layer.
type Setting struct {
	// Text is the value as it would be written on a command line.
	Text   string `json:"value"`
	Origin Origin `json:"origin"`
	data   any
}

// Value is the value in force of one key.
type Value struct {
	Key *Key
	Setting
	// Overridden are the settings that lost, the strongest first; the default is
	// not among them.
	Overridden []Setting
}

// IsSet reports whether the value is more than the default.
func (v Value) IsSet() bool { return v.Origin.Layer != LayerDefault }

// Fault is one thing wrong with a setting.
type Fault struct {
	// File and Line are the place; File is the variable with its dollar sign when
	// it is none.
	File string `json:"file"`
	Line int    `json:"line,omitzero"`
	// Key is the dotted path, empty when the fault is not about one.
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

// String returns file:line: key: message.
func (f Fault) String() string {
	s := f.File
	if f.Line > 0 {
		s += fmt.Sprintf(":%d", f.Line)
	}
	if f.Key != "" {
		s += ": " + f.Key
	}
	return s + ": " + f.Message
}

// Error is everything that is wrong with the settings.
type Error struct{ Faults []Fault }

// Error implements error: the first fault, and how many more there are.
func (e *Error) Error() string {
	if n := len(e.Faults) - 1; n > 0 {
		return fmt.Sprintf("%s (and %d more)", e.Faults[0], n)
	}
	return e.Faults[0].String()
}
