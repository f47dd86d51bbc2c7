package resume

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
	"unicode/utf16"

	"github.com/hayward-dev/hayward/events"
)

// validSession is what a session may be called: it becomes a part of paths and an
// argument.
var validSession = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// maxFiles bounds the files of a home that are looked at.
const maxFiles = 200_000

// claudeProject is the directory in which claude keeps the sessions of a working
// directory.
func claudeProject(cwd string) (string, error) {
	var b strings.Builder
	for _, c := range utf16.Encode([]rune(cwd)) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			b.WriteByte(byte(c))
		} else {
			b.WriteByte('-')
		}
	}
	if b.Len() > 200 { // claude shortens longer ones in its own way
		return "", fmt.Errorf("the path %s is too long for claude to find a session by", cwd)
	}
	return b.String(), nil
}

// placed is where a file of a home goes in the home of the resumed agent.
type placed struct {
	to string
	// conversation tells that it is JSON lines whose paths are rewritten.
	conversation bool
	// main tells that it is the session itself.
	main bool
}

// place says where a file of the home of runner goes, and false for one that does
// not: settings are made anew, and what is of the run that ended stays there.
// project is the directory of the new working directory, for claude.
func place(runner, session, project, name string) (placed, bool) {
	parts := strings.Split(name, "/")
	switch {
	case runner == events.AgentClaude && len(parts) == 3 && parts[0] == "projects" && parts[2] == session+".jsonl":
		return placed{path.Join("projects", project, parts[2]), true, true}, true
	case runner == events.AgentClaude && len(parts) > 3 && parts[0] == "projects" && parts[2] == session:
		parts[1] = project
		return placed{path.Join(parts...), path.Ext(name) == ".jsonl", false}, true
	case runner == events.AgentClaude && len(parts) == 2 && parts[0] == "todos" && strings.HasPrefix(parts[1], session+"-"),
		runner == events.AgentClaude && len(parts) > 2 && (parts[0] == "tasks" || parts[0] == "file-history") && parts[1] == session:
		return placed{name, false, false}, true
	case runner == events.AgentCodex && parts[0] == "sessions" && strings.HasPrefix(path.Base(name), "rollout-") && strings.HasSuffix(name, "-"+session+".jsonl"):
		return placed{name, true, true}, true
	}
	return placed{}, false
}

// errManyFiles ends the look at a home that an agent filled.
var errManyFiles = fmt.Errorf("the home has over %d files", maxFiles)

// eachPlaced calls do with the files of a home that go on.
func eachPlaced(home *os.Root, runner, session, project string, do func(name string, to placed) error) error {
	seen := 0
	return fs.WalkDir(home.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if seen++; seen > maxFiles {
			return errManyFiles
		}
		if d.IsDir() {
			return nil
		}
		to, ok := place(runner, session, project, name)
		if !ok {
			return nil
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", name)
		}
		return do(name, to)
	})
}

// FindSession looks for the session of an agent in a home. It returns the model that
// the session names, where the runner's sessions do.
func FindSession(home *os.Root, runner, session string) (model string, err error) {
	if !validSession.MatchString(session) {
		return "", fmt.Errorf("%q is not the name of a session", session)
	}
	found := 0
	err = eachPlaced(home, runner, session, "x", func(name string, to placed) error {
		if !to.main {
			return nil
		}
		f, err := openRegular(home, name)
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err == nil && st.Size() == 0 {
			err = fmt.Errorf("%s is empty", name)
		}
		if err != nil {
			return err
		}
		if found++; found > 1 {
			return errors.New("there are several of that name")
		}
		if runner == events.AgentCodex {
			model, err = codexModel(f)
		}
		return err
	})
	if err == nil && found == 0 {
		err = fs.ErrNotExist
	}
	return model, err
}

// codexModel is the model of the last turn of a session of codex.
func codexModel(r io.Reader) (model string, err error) {
	in := newLines(r)
	for {
		line, _, err := in.next()
		if errors.Is(err, io.EOF) {
			return model, nil
		}
		if err != nil {
			return model, err
		}
		var turn struct {
			Type    string `json:"type"`
			Payload struct {
				Model string `json:"model"`
			} `json:"payload"`
		}
		if events.DecodeRecord(line, &turn) == nil && turn.Type == "turn_context" && len(turn.Payload.Model) <= events.MaxWord {
			model = turn.Payload.Model
		}
	}
}

// openRegular opens a regular file below root, and nothing else: what a subagent
// made may be a pipe, or a link to somewhere.
func openRegular(root *os.Root, name string) (*os.File, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !os.SameFile(before, st) {
		err = fmt.Errorf("%s has become another file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// writeFile makes a file below root that was not there and makes it durable.
func writeFile(root *os.Root, name string, write func(io.Writer) error) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(f, 64<<10)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
