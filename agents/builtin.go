package agents

import (
	"embed"
	"fmt"
)

//go:embed builtin/*.md
var builtinFiles embed.FS

// BuiltIn returns the types that are always there, by name.
func BuiltIn() []Definition {
	entries, err := builtinFiles.ReadDir("builtin")
	if err != nil {
		panic(fmt.Sprintf("agents: embedded definitions: %v", err)) // part of the program
	}
	var all []Definition
	for _, e := range entries {
		content, err := builtinFiles.ReadFile("builtin/" + e.Name())
		if err != nil {
			panic(fmt.Sprintf("agents: embedded definition %s: %v", e.Name(), err)) // part of the program
		}
		p := Parse(content, Source{Scope: ScopeBuiltIn, Format: FormatHayward}, e.Name())
		if len(p.Faults) > 0 {
			panic("agents: embedded definition: " + p.Faults[0].String()) // checked by a test
		}
		all = append(all, *p.Definition)
	}
	return all
}
