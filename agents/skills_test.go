package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func writeSkill(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "lib"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib/run.sh"), []byte("#!/bin/sh\n"), 0o755))
}

func TestFindSkill(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	writeSkill(t, filepath.Join(home, ".claude/skills/look"), "---\nname: look\n---\n\nOf the user.\n")
	writeSkill(t, filepath.Join(project, ".claude/skills/look"), "Of the project.")
	p := Places{Dir: project, Project: project, Home: home}
	s, err := FindSkill(p, "look")
	require.NoError(t, err)
	require.Equal(t, "Of the user.", s.Text)
	require.Equal(t, []SkillFile{
		{Path: "SKILL.md", Data: []byte("---\nname: look\n---\n\nOf the user.\n")},
		{Path: "lib/run.sh", Data: []byte("#!/bin/sh\n"), Program: true},
	}, s.Files)
	hash := s.Hash
	require.NoError(t, os.Chmod(filepath.Join(s.Dir, "lib/run.sh"), 0o644))
	s, err = FindSkill(p, "look")
	require.NoError(t, err)
	require.NotEqual(t, hash, s.Hash, "what may be executed counts")

	p.Trusted = true
	s, err = FindSkill(p, "look")
	require.NoError(t, err)
	require.Equal(t, "Of the project.", s.Text)
}

func TestSkillsThatCannotBeHad(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".claude/skills/look")
	p := Places{Home: home}
	says := func(text string) {
		t.Helper()
		_, err := FindSkill(p, "look")
		require.ErrorContains(t, err, text)
	}
	says("there is none in " + filepath.Join(home, ".claude/skills"))
	_, err := FindSkill(p, "../look")
	require.ErrorContains(t, err, "no name of a skill")
	writeSkill(t, dir, "---\nname: look\n---\n")
	says("has no SKILL.md with a text")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("Look."), 0o644))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	says("link is neither a file nor a directory")
	require.NoError(t, os.Remove(filepath.Join(dir, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), []byte(strings.Repeat("x", maxSkillBytes)), 0o644))
	says("there are more than")
}
