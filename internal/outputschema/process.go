package outputschema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// Verb is the argument that makes the program a validator, see [Serve].
const Verb = "__validate"

// The bounds of a validator: its stack, its address space, its processor time.
const (
	maxStack  = 64 << 20
	maxMemory = 4 << 30
	maxCPU    = 10 * time.Second
	// maxMessage bounds what is read of one, with what JSON adds to the answer.
	maxMessage = 16 << 20
)

// request is what a validator is asked, and reply what it says.
type request struct {
	Schema []byte `json:"schema"`
	Result []byte `json:"result"`
}

type reply struct {
	Value    []byte `json:"value,omitempty"`
	Mismatch string `json:"mismatch,omitempty"`
	Error    string `json:"error,omitempty"`
}

// MismatchError says how a result does not meet its schema.
type MismatchError struct{ Text string }

func (e *MismatchError) Error() string { return e.Text }

// Run validates a result in a process of its own, which is program with [Verb], and
// returns it without insignificant space. The time and memory that it takes are not
// this process's. Every error but a [*MismatchError] is one of the validation itself.
func Run(ctx context.Context, program string, schema, result []byte) ([]byte, error) {
	body, err := events.MarshalRecord(request{schema, result})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxCPU)
	defer cancel()
	var out, words bytes.Buffer
	cmd := exec.CommandContext(ctx, program, Verb)
	cmd.Args[0] = "hayward"
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(body), &out, &limited{to: &words, left: 1024}
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("the validator ended: %w: %s", err, bytes.TrimSpace(words.Bytes())), ctx.Err())
	}
	var r reply
	if err := events.DecodeRecord(out.Bytes(), &r); err != nil {
		return nil, fmt.Errorf("the validator's answer: %w", err)
	}
	switch {
	case r.Error != "":
		return nil, errors.New(r.Error)
	case r.Mismatch != "":
		return nil, &MismatchError{r.Mismatch}
	}
	return r.Value, nil
}

// limited keeps the beginning of what is written.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.to.Write(p[:n])
	l.left -= n
	return len(p), nil
}

// Serve validates one result: it reads what [Run] sends and writes the answer. It
// bounds its process for good.
func Serve(in io.Reader, out io.Writer) error {
	debug.SetMaxStack(maxStack)
	for resource, limit := range map[int]uint64{unix.RLIMIT_CPU: uint64(maxCPU / time.Second), unix.RLIMIT_AS: maxMemory, unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("bound the validator: %w", err)
		}
	}
	b, err := io.ReadAll(io.LimitReader(in, maxMessage))
	if err != nil {
		return err
	}
	var asked request
	if err := events.DecodeRecord(b, &asked); err != nil {
		return err
	}
	var r reply
	if schema, err := Compile(asked.Schema); err != nil {
		r.Error = err.Error()
	} else if r.Value, err = schema.Validate(asked.Result); err != nil {
		r.Mismatch = err.Error()
	}
	if b, err = events.MarshalRecord(r); err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}
