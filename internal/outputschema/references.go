package outputschema

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// What of a schema are schemas, by where they apply: to the value itself, or to
// parts of it, or not by themselves.
var (
	sameValue      = map[string]bool{"not": true, "if": true, "then": true, "else": true}
	sameValueList  = map[string]bool{"allOf": true, "anyOf": true, "oneOf": true}
	sameValueTable = map[string]bool{"dependentSchemas": true, "dependencies": true}
	partOfValue    = map[string]bool{
		"additionalProperties": true, "additionalItems": true, "items": true, "contains": true, "propertyNames": true,
		"unevaluatedItems": true, "unevaluatedProperties": true, "contentSchema": true,
	}
	partOfValueList  = map[string]bool{"items": true, "prefixItems": true}
	partOfValueTable = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true}
	// elsewhere are the ways to name schemas that are not followed here.
	elsewhere = []string{"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"}
)

// graph has, for each schema by its JSON pointer, the schemas that apply to the
// same value.
type graph map[string][]string

// checker goes through a schema once.
type checker struct {
	graph
	patterns
}

// check refuses references that lead elsewhere, those that come back to where they
// are at the same value, types that are none, and patterns that are too large.
func check(tree any) error {
	g := &checker{graph: graph{}}
	if err := g.walk(tree, ""); err != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(g.graph)) {
		for _, to := range g.graph[at] {
			if _, ok := g.graph[to]; !ok {
				return fmt.Errorf("#%s refers to #%s, which is no schema in it", at, to)
			}
		}
	}
	return g.cycles()
}

// walk adds a schema and those in it.
func (g *checker) walk(schema any, at string) error {
	g.graph[at] = nil
	table, ok := schema.(map[string]any)
	if !ok {
		return nil // true or false
	}
	for _, name := range elsewhere {
		if _, ok := table[name]; ok {
			return fmt.Errorf("#%s has %s; only $ref to a part of itself, #/..., is followed", at, name)
		}
	}
	if err := checkSpelling(table); err != nil {
		return fmt.Errorf("#%s: %w", at, err)
	}
	if err := checkTypes(table["type"]); err != nil {
		return fmt.Errorf("#%s: %w", at+"/type", err)
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		value, here := table[key], at+"/"+escape(key)
		if err := g.keyword(key, value, at, here); err != nil {
			return err
		}
	}
	return nil
}

func (g *checker) keyword(key string, value any, at, here string) error {
	list, isList := value.([]any)
	table, isTable := value.(map[string]any)
	switch {
	case key == "pattern":
		if pattern, ok := value.(string); ok {
			if err := g.add(pattern); err != nil {
				return fmt.Errorf("#%s: %w", here, err)
			}
		}
	case key == "$ref":
		to, err := pointer(value)
		if err != nil {
			return fmt.Errorf("#%s: %w", here, err)
		}
		g.graph[at] = append(g.graph[at], to)
	case sameValue[key]:
		g.graph[at] = append(g.graph[at], here)
		return g.walk(value, here)
	case sameValueList[key] && isList, partOfValueList[key] && isList:
		for i, v := range list {
			item := here + "/" + strconv.Itoa(i)
			if sameValueList[key] {
				g.graph[at] = append(g.graph[at], item)
			}
			if err := g.walk(v, item); err != nil {
				return err
			}
		}
	case sameValueTable[key] && isTable, partOfValueTable[key] && isTable:
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if _, names := table[name].([]any); names {
				continue // of dependencies: names of properties
			}
			item := here + "/" + escape(name)
			if key == "patternProperties" {
				if err := g.add(name); err != nil {
					return fmt.Errorf("#%s: %w", here, err)
				}
			}
			if sameValueTable[key] {
				g.graph[at] = append(g.graph[at], item)
			}
			if err := g.walk(table[name], item); err != nil {
				return err
			}
		}
	case partOfValue[key]:
		return g.walk(value, here)
	}
	return nil
}

// pointer is the JSON pointer of a reference.
func pointer(ref any) (string, error) {
	text, ok := ref.(string)
	to, local := strings.CutPrefix(text, "#")
	if !ok || !local || to != "" && !strings.HasPrefix(to, "/") {
		return "", fmt.Errorf("%v leads out of the schema", ref)
	}
	plain, err := url.PathUnescape(to)
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	return plain, nil
}

func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// cycles refuses a schema that applies itself to the same value again.
func (g graph) cycles() error {
	const entered, left = 1, 2
	state := make(map[string]int, len(g))
	var visit func(at string) error
	visit = func(at string) error {
		switch state[at] {
		case entered:
			return fmt.Errorf("#%s comes back to itself without going deeper into the value", at)
		case left:
			return nil
		}
		state[at] = entered
		for _, to := range g[at] {
			if err := visit(to); err != nil {
				return err
			}
		}
		state[at] = left
		return nil
	}
	for _, at := range slices.Sorted(maps.Keys(g)) {
		if err := visit(at); err != nil {
			return err
		}
	}
	return nil
}
