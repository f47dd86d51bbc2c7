package spawner

import (
	"fmt"
	"os"
	slashpath "path"
	"strings"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
)

// skillsDir is where a home has the files of skills.
const skillsDir = "skills"

// putSkills copies the skills of the agent's type into its home and adds their
// texts to the system prompt. inside is the home as the agent sees it.
func (c *child) putSkills(inside, systemPrompt string) (string, *events.Error) {
	skills := c.spec.Agent.Skills
	if len(skills) == 0 {
		return systemPrompt, nil
	}
	fail := func(name string, err error) *events.Error {
		return events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: skill %s: %w", c.spec.ID, name, err)
	}
	root, err := os.OpenRoot(c.home)
	if err != nil {
		return "", fail(skills[0].Name, err)
	}
	defer root.Close()
	parts := []string{systemPrompt}
	for _, s := range skills {
		skill, err := agents.LoadSkill(s.Dir)
		if err != nil {
			return "", fail(s.Name, err)
		}
		if skill.Hash != s.Hash {
			return "", fail(s.Name, fmt.Errorf("%s has changed since the spawn was accepted", s.Dir)).WithRemedy("spawn it again")
		}
		if err := putSkill(root, s.Name, skill); err != nil {
			return "", fail(s.Name, err)
		}
		parts = append(parts, fmt.Sprintf("# Skill %s\n\nIts files are in %s.\n\n%s", s.Name, slashpath.Join(inside, skillsDir, s.Name), skill.Text))
	}
	prompt := strings.TrimSpace(strings.Join(parts, "\n\n"))
	if len(prompt) > events.MaxPrompt {
		return "", events.Errorf(events.CodeTooLarge, events.LayerGate, "start %s: the prompt of its type has %d bytes with its skills, the limit is %d", c.spec.ID, len(prompt), events.MaxPrompt)
	}
	return prompt, nil
}

// putSkill writes the files of a skill into a home. An earlier run may have left
// anything in it.
func putSkill(home *os.Root, name string, s *agents.Skill) error {
	dir := slashpath.Join(skillsDir, name)
	if err := home.RemoveAll(dir); err != nil {
		return err
	}
	for _, f := range s.Files {
		path := slashpath.Join(dir, f.Path)
		if err := home.MkdirAll(slashpath.Dir(path), 0o700); err != nil {
			return err
		}
		mode := os.FileMode(0o600)
		if f.Program {
			mode = 0o700
		}
		if err := home.WriteFile(path, f.Data, mode); err != nil {
			return err
		}
	}
	return nil
}
