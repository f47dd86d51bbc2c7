package agents

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The formats of files.
const (
	FormatHayward = "hayward"
	FormatClaude  = "claude"
	FormatGrok    = "grok"
	FormatCodex   = "codex"
)

// Bounds of one directory of definitions.
const (
	MaxFiles = 1000
	MaxLevel = 4
)

// places are the directories below a project or a home, the strongest first.
var places = []struct{ dir, format string }{
	{".hayward/agents", FormatHayward},
	{".claude/agents", FormatClaude},
	{".grok/agents", FormatGrok},
	{".codex/agents", FormatCodex},
}

// Places say where to look. What is empty is not looked into.
type Places struct {
	// Dir is where the spawn works; Project, at or above it, the top of its project.
	Dir, Project string
	// Trusted: the files at the top of the project are trusted.
	Trusted bool
	// Config is the user's configuration directory, Home the home directory.
	Config, Home string
}

// trusts reports whether what is in a directory of the project counts in full: only
// what is at its top was looked at when it was trusted.
func (p Places) trusts(dir string) bool { return p.Trusted && dir == p.Project }

// Load reads the definitions of all places. Directories that are not there are
// no fault.
func Load(p Places) *Set {
	l := &loader{held: make(map[string]Source)}
	l.set.broken = make(map[string]Fault)
	if p.Project != "" {
		for _, dir := range upwards(p.Dir, p.Project) {
			for _, place := range places {
				l.readDir(dir, place.dir, Source{Scope: ScopeProject, Format: place.format, Untrusted: !p.trusts(dir)})
			}
		}
	}
	if p.Config != "" {
		l.readDir(p.Config, "agents", Source{Scope: ScopeUser, Format: FormatHayward})
	}
	if p.Home != "" {
		for _, place := range places[1:] {
			l.readDir(p.Home, place.dir, Source{Scope: ScopeUser, Format: place.format})
		}
	}
	for _, d := range BuiltIn() {
		l.take(Parsed{Definition: &d, Name: d.Name}, d.Source)
	}
	return l.finish()
}

// upwards lists dir and its parents up to top; only top when dir is not below.
func upwards(dir, top string) []string {
	rel, err := filepath.Rel(top, dir)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return []string{top}
	}
	var dirs []string
	for ; dir != top; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return append(dirs, top)
}

// readDir reads the files below base/dir. Everything is opened below base: a
// link in a project must not have a file of the user read as a definition. In the
// user's own directories links may lead anywhere.
func (l *loader) readDir(base, dir string, source Source) {
	where := filepath.Join(base, dir)
	fault := func(path string, err error) {
		if !errors.Is(err, fs.ErrNotExist) {
			l.set.Faults = append(l.set.Faults, Fault{Severity: SeverityWarning, File: path, Message: "is not read: " + cause(err)})
		}
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		fault(where, err)
		return
	}
	defer root.Close()
	if source.Scope == ScopeUser {
		own, err := os.OpenRoot(where) // follows links
		if err != nil {
			fault(where, err)
			return
		}
		defer own.Close()
		root, dir = own, "."
	}
	names, err := list(root, dir)
	if err != nil {
		fault(where, err)
	}
	for _, name := range names {
		source.Path = filepath.Join(base, dir, name)
		if source.Scope == ScopeUser {
			source.Path = filepath.Join(where, name)
		}
		content, err := read(root, filepath.Join(dir, name), source)
		if err != nil {
			fault(source.Path, err)
			continue
		}
		l.add(Parse(content, source, source.Path), source)
	}
}

// cause is the innermost error: the path is said once.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}

// list returns the files below dir that can be definitions, sorted, by their
// path below dir.
func list(root *os.Root, dir string) ([]string, error) {
	var names []string
	err := fs.WalkDir(root.FS(), filepath.ToSlash(filepath.Clean(dir)), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path) // both are below the root
		switch level := strings.Count(rel, "/"); {
		case e.IsDir() && (level >= MaxLevel || strings.HasPrefix(e.Name(), ".") && path != filepath.Clean(dir)):
			return fs.SkipDir
		case e.IsDir(), filepath.Ext(rel) != ".md" && filepath.Ext(rel) != ".toml":
			return nil
		case len(names) == MaxFiles:
			return errors.New("there are more than 1000 files")
		}
		names = append(names, rel)
		return nil
	})
	slices.Sort(names)
	return names, err
}

// read returns the content of a regular file.
func read(root *os.Root, name string, source Source) ([]byte, error) {
	open := func() (*os.File, error) { return root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) }
	if source.Scope == ScopeUser {
		open = func() (*os.File, error) { return os.OpenFile(source.Path, os.O_RDONLY|unix.O_NONBLOCK, 0) }
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}

// dir is the directory whose files share a name space.
func (s Source) dir() string {
	for _, p := range places {
		if i := strings.LastIndex(s.Path, p.dir+"/"); i >= 0 {
			return s.Path[:i+len(p.dir)]
		}
	}
	return filepath.Dir(s.Path)
}
