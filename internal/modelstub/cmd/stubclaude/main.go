// Command stubclaude stands in for claude -p --output-format stream-json: it asks
// the model at $ANTHROPIC_BASE_URL, runs the commands that the model wants, and
// prints the events that the real one prints. A tool other than Bash is denied, as
// one that nobody approves. It keeps its conversation in
// $CLAUDE_CONFIG_DIR, so that --resume goes on with it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stubclaude:", err)
		os.Exit(1)
	}
}

// message is one of a conversation.
type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is text, a call of a tool, or its result.
type block struct {
	Type    string `json:"type"`
	Text    string `json:"text,omitempty"`
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Input   any    `json:"input,omitempty"`
	ToolID  string `json:"tool_use_id,omitempty"`
	Content string `json:"content,omitempty"`
	IsError bool   `json:"is_error,omitempty"`
}

// answer is what the model says.
type answer struct {
	ID         string         `json:"id"`
	Model      string         `json:"model"`
	Role       string         `json:"role"`
	Content    []block        `json:"content"`
	StopReason string         `json:"stop_reason"`
	Usage      map[string]any `json:"usage"`
}

type session struct {
	ID       string    `json:"id"`
	Messages []message `json:"messages"`
	file     string
	model    string
	turns    int
	usage    map[string]float64
	denied   []any
}

func run(args []string) error {
	if !slices.Contains(args, "stream-json") {
		return fmt.Errorf("only --output-format stream-json is spoken, not %q", args)
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	s := &session{ID: fmt.Sprintf("%08x-0000-4000-8000-%012x", time.Now().Unix(), os.Getpid()), model: value(args, "--model", "stub"), usage: map[string]float64{}}
	resume := value(args, "--resume", "")
	if resume != "" {
		s.ID = resume
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	// As the real one, it finds a session by the working directory alone.
	project := strings.Map(func(c rune) rune {
		if c < 0x80 && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			return c
		}
		return '-'
	}, cwd)
	s.file = filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "projects", project, s.ID+".jsonl")
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return err
	}
	if resume != "" {
		b, err := os.ReadFile(s.file)
		if err != nil {
			return fmt.Errorf("no conversation found with session ID: %s: %w", resume, err)
		}
		if err := json.Unmarshal(b, s); err != nil {
			return err
		}
	}
	s.print(map[string]any{"type": "system", "subtype": "init", "session_id": s.ID, "model": s.model, "cwd": cwd, "permissionMode": value(args, "--permission-mode", "default"), "tools": []string{"Bash"}})
	s.Messages = append(s.Messages, message{"user", []block{{Type: "text", Text: string(prompt)}}})
	return s.converse()
}

// value is the argument behind a flag.
func value(args []string, flag, otherwise string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return otherwise
}

// converse asks the model until it wants no more tools.
func (s *session) converse() error {
	for {
		a, err := s.ask()
		if err != nil {
			s.result(true, err.Error(), nil)
			return err
		}
		s.turns++
		for name, n := range a.Usage {
			if f, ok := n.(float64); ok {
				s.usage[name] += f
			}
		}
		s.print(map[string]any{"type": "assistant", "message": a, "session_id": s.ID})
		s.Messages = append(s.Messages, message{"assistant", a.Content})
		results := message{Role: "user"}
		text := ""
		for _, b := range a.Content {
			switch b.Type {
			case "text":
				text = b.Text
			case "tool_use":
				results.Content = append(results.Content, s.use(b))
			}
		}
		if results.Content != nil {
			s.print(map[string]any{"type": "user", "message": results, "session_id": s.ID})
			s.Messages = append(s.Messages, results)
		}
		if err := s.save(); err != nil {
			return err
		}
		if results.Content == nil {
			s.result(false, text, &a.StopReason)
			return nil
		}
	}
}

// ask sends the conversation, again while the model is away.
func (s *session) ask() (*answer, error) {
	body, err := json.Marshal(map[string]any{"model": s.model, "max_tokens": 1000, "messages": s.Messages})
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		a, err := s.post(body)
		if err == nil || attempt == 100 || errors.Is(err, errRefused) {
			return a, err
		}
		fmt.Fprintln(os.Stderr, "stubclaude: again:", err)
		time.Sleep(100 * time.Millisecond)
	}
}

// errRefused is an answer that asking again does not change.
var errRefused = errors.New("refused")

func (s *session) post(body []byte) (*answer, error) {
	r, err := http.NewRequest(http.MethodPost, os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("ANTHROPIC_AUTH_TOKEN"))
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusBadRequest {
		return nil, fmt.Errorf("%w: %s: %s", errRefused, response.Status, b)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, b)
	}
	a := &answer{}
	return a, json.Unmarshal(b, a)
}

// use runs the command of a Bash call.
func (s *session) use(b block) block {
	if b.Name != "Bash" {
		s.denied = append(s.denied, map[string]any{"tool_name": b.Name, "tool_use_id": b.ID, "tool_input": b.Input})
		return block{Type: "tool_result", ToolID: b.ID, IsError: true, Content: "Claude requested permissions to use " + b.Name + ", but you haven't granted it yet."}
	}
	input, _ := b.Input.(map[string]any)
	command, _ := input["command"].(string)
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	return block{Type: "tool_result", ToolID: b.ID, Content: string(out), IsError: err != nil}
}

func (s *session) save() error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(s.file, b, 0o600)
}

func (s *session) result(failed bool, text string, stop *string) {
	subtype := "success"
	if failed {
		subtype = "error_during_execution"
	}
	s.print(map[string]any{
		"type": "result", "subtype": subtype, "is_error": failed, "num_turns": s.turns, "result": text,
		"stop_reason": stop, "session_id": s.ID, "usage": s.usage, "permission_denials": append([]any{}, s.denied...),
	})
}

func (s *session) print(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stubclaude:", err)
		return
	}
	fmt.Println(string(b))
}
