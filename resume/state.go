package resume

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// StateDir is the directory in a run directory that holds the state files. A command
// finds it by $HAYWARD_SESSION_DIR and may keep them there; those of an agent are
// made from its transcript at its end. docs/resume.md has the format.
const StateDir = "session"

// The state files. Only the first one goes with a resume.
const (
	ToolStateFile = "tool_state.json"
	PlanStateFile = "plan_state.json"
	PlanModeFile  = "plan_mode.json"
	SignalsFile   = "signals.json"
)

// stateSchema is the version in each state file.
const stateSchema = 1

// The bounds of a state file.
const (
	maxState   = 4 << 20
	maxEntries = 1024
	maxHashed  = 64 << 20  // bytes of a file that is hashed
	maxHashing = 256 << 20 // bytes that are hashed at the end of a run
)

// ToolState is what the tools of a conversation know.
type ToolState struct {
	Schema int `json:"schema"`
	// FilesRead are the files that it read, by path, in the order in which they were
	// read last.
	FilesRead          []FileRead          `json:"files_read"`
	BackgroundCommands []BackgroundCommand `json:"background_commands"`
	Todo               []TodoItem          `json:"todo"`
}

// FileRead is a file that was read. SHA256 is of the file as it was at the end of the
// run; empty if it could not be read then, has over 64 MiB, or was one too many: the
// end waits for 256 MiB of hashing, of what was read last.
type FileRead struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"`
}

// BackgroundCommand is a command that a tool started and did not wait for. None
// outlives its run.
type BackgroundCommand struct {
	ToolID  string `json:"tool_id"`
	Command string `json:"command"`
}

// TodoItem is an entry of a list of things to do.
type TodoItem struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// PlanState is the plan that was put forward last.
type PlanState struct {
	Schema int    `json:"schema"`
	Plan   string `json:"plan"`
}

// The plan modes.
const (
	PlanInactive = "inactive" // it works
	PlanPending  = "pending"  // it has put a plan forward, and nobody has answered
	PlanActive   = "active"   // it plans
)

// PlanMode is whether it was planning.
type PlanMode struct {
	Schema int    `json:"schema"`
	Mode   string `json:"mode"`
}

// Signals are the counters of one run.
type Signals struct {
	Schema    int `json:"schema"`
	Turns     int `json:"turns"`
	ToolCalls int `json:"tool_calls"`
	Denials   int `json:"denials"`
	// TokensUsed is what the run read and wrote. StopRequests names why it was told
	// to end.
	TokensUsed   int64    `json:"tokens_used"`
	StopRequests []string `json:"stop_requests"`
}

// readState reads a state file, which has to be a JSON object of bounded size.
func readState(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxState+1))
	switch value := jsontext.Value(bytes.TrimSpace(body)); {
	case err != nil:
		return nil, err
	case len(body) > maxState:
		return nil, fmt.Errorf("it has over %d bytes", maxState)
	case !value.IsValid() || value.Kind() != '{':
		return nil, errors.New("it is no JSON object")
	}
	return body, nil
}

// Watcher makes the state of an agent from the items of its run.
type Watcher struct {
	tools ToolState
	plan  string
	mode  string
}

// NewWatcher returns a watcher that goes on from the tool state of a resumed
// conversation. planning tells that the run began in plan mode.
func NewWatcher(before ToolState, planning bool) *Watcher {
	w := &Watcher{tools: before, mode: PlanInactive}
	w.tools.Schema = stateSchema
	w.tools.BackgroundCommands = nil // of a run that has ended
	if planning {
		w.mode = PlanActive
	}
	return w
}

// Add takes the next item.
func (w *Watcher) Add(i events.Item) {
	if i.Kind != events.ItemToolCall || len(i.Input) == 0 || i.ParentToolID != "" {
		return
	}
	var in struct {
		FilePath   string     `json:"file_path"`
		Command    string     `json:"command"`
		Background bool       `json:"run_in_background"`
		Plan       string     `json:"plan"`
		Todos      []TodoItem `json:"todos"`
	}
	if events.DecodeRecord(i.Input, &in) != nil {
		return // a tool of the same name with other arguments
	}
	if w.mode == PlanPending && i.Tool != "ExitPlanMode" { // it was let go
		w.mode = PlanInactive
	}
	switch i.Tool {
	case "Read", "NotebookRead":
		if in.FilePath != "" {
			w.read(in.FilePath)
		}
	case "Bash":
		if in.Background && len(w.tools.BackgroundCommands) < maxEntries {
			w.tools.BackgroundCommands = append(w.tools.BackgroundCommands, BackgroundCommand{ToolID: i.ToolID, Command: in.Command})
		}
	case "TodoWrite":
		w.tools.Todo = in.Todos[:min(len(in.Todos), maxEntries)]
	case "EnterPlanMode":
		w.mode = PlanActive
	case "ExitPlanMode":
		w.plan, w.mode = in.Plan, PlanPending
	}
}

func (w *Watcher) read(name string) {
	w.tools.FilesRead = slices.DeleteFunc(w.tools.FilesRead, func(f FileRead) bool { return f.Path == name })
	if len(w.tools.FilesRead) == maxEntries {
		w.tools.FilesRead = w.tools.FilesRead[1:]
	}
	w.tools.FilesRead = append(w.tools.FilesRead, FileRead{Path: name})
}

// Watch adds the items of a transcript that are of its own run.
func Watch(transcript io.Reader, w *Watcher) error {
	_, err := walk(transcript, func(i events.Item) error {
		if i.From == "" {
			w.Add(i)
		}
		return nil
	})
	return err
}

// Finish hashes the files that were read, as far as they are below top, and writes
// the state files into the run directory. If ctx ends while it hashes, it writes none.
func (w *Watcher) Finish(ctx context.Context, dir *os.Root, top string, s Signals) error {
	if err := w.hash(ctx, top); err != nil {
		return err
	}
	s.Schema = stateSchema
	var errs []error
	for name, v := range map[string]any{
		ToolStateFile: w.tools, PlanStateFile: PlanState{stateSchema, w.plan}, PlanModeFile: PlanMode{stateSchema, w.mode}, SignalsFile: s,
	} {
		body, err := events.MarshalRecord(v)
		if err == nil {
			err = replace(dir, path.Join(StateDir, name), append(body, '\n'))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hash notes what the files hold now, the latest first. The paths are what an agent
// named, so nothing outside of top is opened, and how much is read is bounded: the end
// of the run waits for it.
func (w *Watcher) hash(ctx context.Context, top string) error {
	files := w.tools.FilesRead
	for i := range files {
		files[i].SHA256 = ""
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil // it is gone, and so are the files
	}
	defer root.Close()
	left := int64(maxHashing)
	for i := len(files) - 1; i >= 0 && ctx.Err() == nil; i-- {
		below, err := filepath.Rel(top, files[i].Path)
		if err != nil || !filepath.IsLocal(below) {
			continue
		}
		var n int64
		files[i].SHA256, n = hashFile(ctx, root, below, min(maxHashed, left))
		left -= n
	}
	return context.Cause(ctx)
}

// hashFile returns the hash of a file of at most that many bytes, empty for others,
// and how many it read.
func hashFile(ctx context.Context, root *os.Root, name string, most int64) (hash string, read int64) {
	file, err := openRegular(root, name)
	if err != nil {
		return "", 0
	}
	defer file.Close()
	if st, err := file.Stat(); err != nil || st.Size() > most {
		return "", 0
	}
	sum := sha256.New()
	read, err = io.Copy(sum, io.LimitReader(untilDone{ctx, file}, most+1)) // it may grow
	if err != nil || read > most {
		return "", read
	}
	return hex.EncodeToString(sum.Sum(nil)), read
}

// untilDone is a reader that fails once its context has ended.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}

// replace writes a file below root in one step.
func replace(root *os.Root, name string, body []byte) error {
	temp := path.Join(path.Dir(name), "."+path.Base(name)+".tmp")
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := writeFile(root, temp, func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	})
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

// ReadToolState reads the tool state of a run directory; none is empty.
func ReadToolState(dir *os.Root) (ToolState, error) {
	var s ToolState
	f, err := openRegular(dir, path.Join(StateDir, ToolStateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	body, err := readState(f)
	if err == nil {
		err = events.DecodeRecord(body, &s)
	}
	return s, err
}
