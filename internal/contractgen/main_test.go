package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// TestUpToDate fails when the checked-in files do not match package events.
func TestUpToDate(t *testing.T) { require.NoError(t, run(root, true)) }

// TestStale: an old, a missing and a left-over file are each noticed.
func TestStale(t *testing.T) {
	files, err := generate(filepath.Join(root, "events"))
	require.NoError(t, err)
	dir := t.TempDir()
	for name, b := range files {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	require.NoError(t, stale(dir, files))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "docs/contract.md"), []byte("old"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, schemaDir, "query.reply.json")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, schemaDir, "resume.request.json"), []byte("{}"), 0o644))
	err = stale(dir, files)
	require.ErrorContains(t, err, "docs/contract.md")
	require.ErrorContains(t, err, "query.reply.json")
	require.ErrorContains(t, err, "resume.request.json")
}

// TestSourceIsComplete: every type and every constant says what it is.
func TestSourceIsComplete(t *testing.T) {
	src, err := readSource(filepath.Join(root, "events"))
	require.NoError(t, err)
	require.NotEmpty(t, src.doc)
	for _, typ := range src.types {
		require.NotEmpty(t, typ.doc, "type %s has no comment", typ.name)
	}
	for _, c := range src.consts {
		require.NotEmpty(t, c.doc, "constant %s has no comment", c.name)
	}
	for _, name := range []string{"Kind", "State", "Status", "Reason", "Code", "ErrorLayer", "StdinMode", "QueryMode", "CancelOutcome", "Network", "TreeKill", "LayerState", "ItemKind", "ControlKind", "ChildReport"} {
		require.NotEmpty(t, src.values(name), "enumeration %s has no values", name)
	}
	require.Equal(t, "786432", src.constOf["MaxMessage"].value)
	persona := src.typeOf["Spawn"].fields[0]
	for _, f := range src.typeOf["Spawn"].fields {
		if f.name == "Persona" {
			persona = f
		}
	}
	require.Contains(t, persona.doc, "override the agent definition", "a grouped comment belongs to each field it names")
}
