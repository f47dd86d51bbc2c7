package resume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/hayward-dev/hayward/events"
)

// The names in a run directory that a copy makes.
const (
	TranscriptFile = "transcript.jsonl"
	HomeDir        = "home"
)

// Transfer is one copy from the run directory of a source to that of the subagent
// that goes on from it.
type Transfer struct {
	// ID is the source's.
	ID string
	// From and To are the run directories.
	From, To *os.Root
	// Runner is what runs both; Session is the session of an agent.
	Runner, Session string
	// Cwd is where the resumed subagent works.
	Cwd   string
	Paths Paths
}

// Copied is what was brought over.
type Copied struct {
	Items uint64
	// Bytes is the size of the transcript.
	Bytes int64
}

// Copy brings the conversation and the tool state over. On an error nothing of it is
// left in To; the source is never written.
func Copy(t Transfer) (Copied, error) {
	// What an attempt left that was cut off was of no run.
	if err := Clear(t.To); err != nil {
		return Copied{}, err
	}
	done, err := t.copy()
	if err == nil {
		return done, nil
	}
	if undone := Clear(t.To); undone != nil {
		return Copied{}, errors.Join(err, fmt.Errorf("what was copied is still there: %w", undone))
	}
	return Copied{}, err
}

// Clear removes what a copy makes, as long as nothing ran there.
func Clear(dir *os.Root) error {
	for _, name := range []string{HomeDir, StateDir} {
		entries, err := fs.ReadDir(dir.FS(), name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries { // the directory itself may be mounted somewhere
			if err := dir.RemoveAll(path.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := dir.Remove(TranscriptFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (t Transfer) copy() (Copied, error) {
	if t.Runner != events.RunnerCommand {
		if err := t.home(); err != nil {
			return Copied{}, fmt.Errorf("copy the session of %s: %w", t.Runner, err)
		}
	}
	if err := t.toolState(); err != nil {
		return Copied{}, fmt.Errorf("copy the tool state: %w", err)
	}
	done, err := t.transcript()
	if err != nil {
		return Copied{}, fmt.Errorf("copy the transcript: %w", err)
	}
	return done, nil
}

// home brings over what of the source's home is of the conversation.
func (t Transfer) home() error {
	if !validSession.MatchString(t.Session) {
		return fmt.Errorf("%q is not the name of a session", t.Session)
	}
	project, err := claudeProject(t.Cwd)
	if err != nil && t.Runner == events.AgentClaude {
		return err
	}
	home, err := t.From.OpenRoot(HomeDir)
	if err != nil {
		return err
	}
	defer home.Close()
	found := false
	err = eachPlaced(home, t.Runner, t.Session, project, func(name string, to placed) error {
		found = found || to.main
		in, err := openRegular(home, name)
		if err != nil {
			return err
		}
		defer in.Close()
		return writeFile(t.To, path.Join(HomeDir, to.to), func(w io.Writer) error {
			if to.conversation {
				return t.Paths.Lines(w, in)
			}
			_, err := io.Copy(w, in)
			return err
		})
	})
	if err == nil && !found {
		err = fs.ErrNotExist
	}
	return err
}

// toolState brings over the one of the state files that is the conversation's.
func (t Transfer) toolState() error {
	name := path.Join(StateDir, ToolStateFile)
	in, err := openRegular(t.From, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its runner keeps none
	}
	if err != nil {
		return err
	}
	defer in.Close()
	body, err := readState(in)
	if err != nil {
		return err
	}
	if body, err = t.Paths.JSON(body); err != nil {
		return err
	}
	return writeFile(t.To, name, func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	})
}

func (t Transfer) transcript() (done Copied, err error) {
	in, err := openRegular(t.From, TranscriptFile)
	if err != nil {
		return done, err
	}
	defer in.Close()
	err = writeFile(t.To, TranscriptFile, func(w io.Writer) error {
		counted := &counter{to: w}
		s, err := CopyTranscript(counted, in, t.ID, t.Paths)
		done = Copied{Items: uint64(s.Items), Bytes: counted.n}
		if err == nil && s.Items == 0 {
			err = errors.New("it is empty")
		}
		return err
	})
	return done, err
}

// counter counts what passes.
type counter struct {
	to io.Writer
	n  int64
}

// Write implements [io.Writer].
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}
