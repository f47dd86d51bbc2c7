package filetx

import (
	"fmt"
	"slices"
	"strings"
)

// planner turns changes into steps.
type planner struct {
	t *Tree
	// files are the paths that become a file or link, gone those that end.
	files, gone map[string]bool
	kinds       map[string]Kind // of directories looked at
	mkdirs      map[string]bool
	nonce       string
	j           *journal
}

// plan makes the journal of a transaction.
func (t *Tree) plan(changes []Change, format string) (*journal, error) {
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	p := &planner{
		t: t, nonce: nonce, files: map[string]bool{}, gone: map[string]bool{}, kinds: map[string]Kind{}, mkdirs: map[string]bool{},
		j: &journal{Version: journalVersion, Tree: t.path, Format: format, Phase: staging},
	}
	for _, c := range changes {
		if err := CheckPath(c.Path); err != nil {
			return nil, err
		}
		if p.files[c.Path] || p.gone[c.Path] {
			return nil, fmt.Errorf("%s is changed twice", c.Path)
		}
		p.files[c.Path] = c.New.Kind != Absent
		p.gone[c.Path] = c.New.Kind == Absent
	}
	for _, c := range changes {
		if err := p.add(c); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(p.j.Ops, func(a, b *op) int { return strings.Compare(a.path(), b.path()) })
	slices.SortFunc(p.j.Rmdirs, func(a, b *made) int { return strings.Compare(string(b.Path), string(a.Path)) })
	slices.SortFunc(p.j.Mkdirs, func(a, b *made) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return p.j, nil
}

func (p *planner) add(c Change) error {
	old := c.Old
	switch old.Kind {
	case Directory:
		if c.New.Kind == Absent {
			return fmt.Errorf("remove %s: it is a directory", c.Path)
		}
		if err := p.empty(c.Path, old); err != nil {
			return err
		}
		old = State{}
	case Absent, File, Executable, Symlink:
	default:
		return fmt.Errorf("change %s: it is %s", c.Path, old.Kind)
	}
	switch c.New.Kind {
	case Absent:
		if old.Kind == Absent {
			return fmt.Errorf("remove %s: it is not there", c.Path)
		}
	case File, Executable, Symlink:
	default:
		return fmt.Errorf("make %s: it would be %s", c.Path, c.New.Kind)
	}
	dir, err := p.stageDir(c.Path)
	if err != nil {
		return err
	}
	temp := fmt.Sprintf("%s%s-%d", tempPrefix, p.nonce, len(p.j.Ops))
	if dir != "" {
		temp = dir + "/" + temp
	}
	p.j.Ops = append(p.j.Ops, &op{
		Path: []byte(c.Path), Temp: []byte(temp),
		Old: content{old.Kind, old.OID, old.perm, old.uid, old.gid}, New: content{Kind: c.New.Kind, OID: c.New.OID, Perm: uint32(c.Perm.Perm())},
	})
	return p.makeParents(c)
}

// empty plans the removal of a directory that a file replaces: nothing may be
// in it that the transaction does not remove.
func (p *planner) empty(dir string, s State) error {
	p.j.Rmdirs = append(p.j.Rmdirs, &made{[]byte(dir), s.perm})
	return p.t.Walk(dir, func(name string, s State) error {
		switch {
		case s.Kind == Directory:
			p.j.Rmdirs = append(p.j.Rmdirs, &made{[]byte(name), s.perm})
		case !p.gone[name]:
			return fmt.Errorf("replace %s: %s is in it: %w", dir, name, ErrChanged)
		}
		return nil
	})
}

// kind is what a possible directory is now.
func (p *planner) kind(dir string) (Kind, error) {
	if k, ok := p.kinds[dir]; ok {
		return k, nil
	}
	s, err := p.t.stat(dir)
	if err == nil {
		p.kinds[dir] = s.Kind
	}
	return s.Kind, err
}

// stageDir is the deepest directory above a path that is there before and after
// the transaction: its temporary file is on the same file system and in no
// directory's way.
func (p *planner) stageDir(path string) (string, error) {
	stage := ""
	for i := range path {
		if path[i] != '/' {
			continue
		}
		k, err := p.kind(path[:i])
		if err != nil {
			return "", err
		}
		if k != Directory || p.files[path[:i]] {
			break
		}
		stage = path[:i]
	}
	return stage, nil
}

// makeParents plans the directories that a new file needs.
func (p *planner) makeParents(c Change) error {
	if c.New.Kind == Absent {
		return nil
	}
	for i := range c.Path {
		if c.Path[i] != '/' {
			continue
		}
		dir := c.Path[:i]
		k, err := p.kind(dir)
		switch {
		case err != nil:
			return err
		case p.files[dir]:
			return fmt.Errorf("make %s: %s becomes a file", c.Path, dir)
		case k == Directory || p.mkdirs[dir]:
			continue
		case k != Absent && k != Blocked && !p.gone[dir]:
			return fmt.Errorf("make %s: %s is no directory: %w", c.Path, dir, ErrChanged)
		}
		p.mkdirs[dir] = true
		p.j.Mkdirs = append(p.j.Mkdirs, &made{Path: []byte(dir)})
	}
	return nil
}
