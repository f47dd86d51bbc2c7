// Command contractgen derives what outsiders need of the wire contract from
// package events, its comments included: the JSON Schemas of the six requests
// and their replies (events/schemas) and docs/contract.md; and from the table of
// package config docs/configuration.md. All are checked in; a test of this
// package fails when they are stale.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	root := flag.String("root", ".", "the repository's top directory")
	check := flag.Bool("check", false, "write nothing, fail if a file is stale")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "contractgen:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := generate(filepath.Join(root, "events"))
	if err != nil {
		return err
	}
	if check {
		return stale(root, files)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the generated files by their path in the repository.
func generate(eventsDir string) (map[string][]byte, error) {
	src, err := readSource(eventsDir)
	if err != nil {
		return nil, fmt.Errorf("read package events: %w", err)
	}
	files, err := schemas(src)
	if err != nil {
		return nil, fmt.Errorf("derive the schemas: %w", err)
	}
	files["docs/contract.md"] = contract(src)
	files["docs/configuration.md"] = configuration()
	return files, nil
}

// stale lists the files that differ from what would be generated now, and the
// schemas that nothing generates any more.
func stale(root string, files map[string][]byte) error {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if old, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(old, files[name]) {
			names = append(names, name)
		}
	}
	present, err := filepath.Glob(filepath.Join(root, schemaDir, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range present {
		name := filepath.ToSlash(filepath.Join(schemaDir, filepath.Base(path)))
		if _, ok := files[name]; !ok {
			names = append(names, name+" (nothing generates it)")
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("stale, run \"make generate\": %q", names)
	}
	return nil
}
