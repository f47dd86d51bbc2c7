package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// skillFile is the file that makes a directory a skill.
const skillFile = "SKILL.md"

// Bounds of one skill.
const (
	maxSkillFiles = 256
	maxSkillBytes = 2 << 20
)

// Skill is a directory of instructions, with what they refer to.
type Skill struct {
	Name, Dir string
	// Text is SKILL.md without its header.
	Text  string
	Files []SkillFile
	// Hash is the SHA-256 of all files.
	Hash string
}

// SkillFile is a file of a skill, its path relative and with slashes.
type SkillFile struct {
	Path string
	Data []byte
	// Program: it may be executed.
	Program bool
}

// FindSkill reads the skill of a name from the first place that has it: the
// project, if it is trusted, then the user.
func FindSkill(p Places, name string) (*Skill, error) {
	if !events.ValidName(name) {
		return nil, fmt.Errorf("skill %q: that is no name of a skill", name)
	}
	var looked []string
	for _, base := range skillPlaces(p) {
		dir := filepath.Join(base, name)
		skill, err := LoadSkill(dir)
		if errors.Is(err, fs.ErrNotExist) {
			looked = append(looked, base)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("skill %s: %w", name, err)
		}
		skill.Name = name
		return skill, nil
	}
	untrusted := ""
	if p.Project != "" && !p.Trusted {
		untrusted = "; those of this project are not used, it is not trusted (hayward trust)"
	}
	return nil, fmt.Errorf("skill %s: there is none in %s%s", name, strings.Join(looked, ", "), untrusted)
}

// skillPlaces are the directories that have skills, the strongest first.
func skillPlaces(p Places) (dirs []string) {
	if p.Project != "" && p.Trusted {
		dirs = append(dirs, filepath.Join(p.Project, ".hayward/skills"), filepath.Join(p.Project, ".claude/skills"))
	}
	if p.Config != "" {
		dirs = append(dirs, filepath.Join(p.Config, "skills"))
	}
	if p.Home != "" {
		dirs = append(dirs, filepath.Join(p.Home, ".claude/skills"), filepath.Join(p.Home, ".codex/skills"))
	}
	return dirs
}

// LoadSkill reads a directory. Everything is opened below it, and what is neither a
// file nor a directory is refused, so that a link brings no other file along.
func LoadSkill(dir string) (*Skill, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s := &Skill{Dir: dir}
	sum := sha256.New()
	left := int64(maxSkillBytes)
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir():
			return err
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a directory", p)
		case len(s.Files) == maxSkillFiles:
			return fmt.Errorf("there are more than %d files", maxSkillFiles)
		}
		f, err := readSkillFile(root, p, left)
		if err != nil {
			return err
		}
		left -= int64(len(f.Data))
		fmt.Fprintf(sum, "%q %t %d\n", f.Path, f.Program, len(f.Data))
		sum.Write(f.Data) // never fails
		s.Files = append(s.Files, f)
		if p == skillFile {
			s.Text = strings.TrimSpace(withoutHeader(string(f.Data)))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	if s.Text == "" {
		return nil, fmt.Errorf("%s has no %s with a text", dir, skillFile)
	}
	s.Hash = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

func readSkillFile(root *os.Root, name string, most int64) (SkillFile, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return SkillFile{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is not a file")
	}
	if err != nil {
		return SkillFile{}, fmt.Errorf("%s: %w", name, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("there are more than %d bytes", maxSkillBytes)
	}
	return SkillFile{Path: filepath.ToSlash(name), Data: b, Program: st.Mode()&0o100 != 0}, err
}

// withoutHeader is a text without the YAML between two lines of dashes at its top.
func withoutHeader(text string) string {
	text = strings.TrimPrefix(text, "\uFEFF")
	first, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimSpace(first) != "---" {
		return text
	}
	for body := rest; ; {
		line, after, more := strings.Cut(body, "\n")
		switch {
		case strings.TrimSpace(line) == "---":
			return after
		case !more:
			return text
		}
		body = after
	}
}
