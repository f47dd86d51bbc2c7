package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/paths"
	"github.com/hayward-dev/hayward/internal/stdio"
	"github.com/hayward-dev/hayward/sandbox"
)

// app is one run of the command line: what it is connected to and what the
// flags that all verbs share say.
type app struct {
	stdin  *os.File
	stdout io.Writer
	stderr io.Writer
	// environ is the environment, "K=V" each.
	environ []string
	// systemDir holds the system's configuration. Empty: there is none.
	systemDir string
	// settings is the configuration; verbs that read it have it, see withSettings.
	settings *config.Config
	// json is --json.
	json bool
	// began is set once data was written to stdout: an error is then for stderr
	// alone.
	began bool
}

func newApp() *app {
	return &app{stdin: os.Stdin, stdout: stdio.Writer(os.Stdout), stderr: stdio.Writer(os.Stderr), environ: os.Environ(), systemDir: config.SystemDir}
}

// getenv returns the last value of a variable, or empty.
func (a *app) getenv(name string) string {
	v, _ := a.lookupEnv(name)
	return v
}

func (a *app) lookupEnv(name string) (string, bool) {
	for i := len(a.environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(a.environ[i], "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// run executes the command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	out := &noting{w: a.stdout}
	root.SetOut(out)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if out.err != nil && !errors.As(err, new(*verbError)) {
		a.began = true
		err = &verbError{fmt.Errorf("write to stdout: %w", out.err)}
	}
	if err == nil {
		return exitDone
	}
	return a.fail(cmd, err)
}

// fail says what went wrong, in one line for people (one for each fault of a
// sandbox.toml) and with --json as an
// object, and returns the exit code.
func (a *app) fail(cmd *cobra.Command, err error) int {
	var status exitStatus
	if errors.As(err, &status) {
		return int(status)
	}
	verb := cmd.CommandPath()
	var ran *verbError
	if !errors.As(err, &ran) {
		// Whatever no verb returned is about the command line itself.
		err = events.Errorf(events.CodeInvalidRequest, events.LayerGate, "%s", oneLine(plainFlagError(err.Error()))).
			WithRemedy("see: %s --help", verb)
	}
	code := exitCode(err)
	var stopped *interruption
	if !errors.As(err, &stopped) {
		// The coordinator names the event as well, where that is the verb's own name.
		for _, line := range errorLines(err) {
			a.say("%s: %s", verb, strings.TrimPrefix(line, cmd.Name()+": "))
		}
		if a.json && !a.began {
			// An object that cannot be written has been said on stderr.
			_ = a.printJSON(failure{Error: events.AsError(err)})
		}
	}
	return code
}

// errorLines is an error for people: one line, or one for each fault of a
// sandbox.toml with the remedy behind the last.
func errorLines(err error) []string {
	faults := sandbox.Faults(err)
	if len(faults) == 0 {
		return []string{oneLine(err.Error())}
	}
	var out []string
	for _, f := range faults {
		out = append(out, oneLine(f.Error()))
	}
	if remedy := events.AsError(err).Remedy; remedy != "" {
		out[len(out)-1] += oneLine(" (" + remedy + ")")
	}
	return out
}

// failure is what --json prints when a verb fails before it has data.
type failure struct {
	Error *events.Error `json:"error"`
}

// say writes one line for people. When stderr takes nothing there is nobody to
// tell that to.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
}

// warn passes on what a reply warns of.
func (a *app) warn(cmd *cobra.Command, warnings []string) {
	for _, w := range warnings {
		a.say("%s: warning: %s", cmd.CommandPath(), oneLine(w))
	}
}

// printJSON writes one value and a newline to stdout.
func (a *app) printJSON(v any) error {
	b, err := events.MarshalRecord(v)
	if err != nil {
		return err
	}
	return a.write(append(b, '\n'))
}

// write writes data to stdout: all of it, or an error.
func (a *app) write(b []byte) error {
	a.began = true
	if _, err := a.stdout.Write(b); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// printf writes formatted data to stdout.
func (a *app) printf(format string, args ...any) error {
	return a.write(fmt.Appendf(nil, format, args...))
}

// paths finds the directories.
func (a *app) paths() (paths.Paths, error) {
	p, err := paths.FromEnvironment(a.getenv)
	if err != nil {
		return p, events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "%w", err)
	}
	return p, nil
}

// terminal returns the width of w if it is a terminal.
func terminal(w any) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}

// colored reports whether stdout takes colors.
func (a *app) colored() bool {
	_, tty := terminal(a.stdout)
	return tty && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// oneLine makes text from elsewhere safe to show on one line.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, s)
	return printable(s)
}

// printable removes escape sequences and control characters.
func printable(s string) string {
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r < 0x20 || (r >= 0x7f && r < 0xa0) {
			return -1
		}
		return r
	}, s)
}

// verb makes the body of a verb: its context ends at an interrupt, and its
// errors are told from those of the command line.
func (a *app) verb(body func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		if err := checkNamed(cmd); err != nil {
			return wrapVerb(ctx, err)
		}
		return wrapVerb(ctx, body(ctx, cmd, args))
	}
}

// rawVerb is verb for one that handles the signals itself.
func (a *app) rawVerb(body func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := checkNamed(cmd); err != nil {
			return wrapVerb(cmd.Context(), err)
		}
		return wrapVerb(cmd.Context(), body(cmd.Context(), cmd, args))
	}
}

// verbError is an error that a verb returned.
type verbError struct{ err error }

func (e *verbError) Error() string { return e.err.Error() }
func (e *verbError) Unwrap() error { return e.err }

func wrapVerb(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var stopped *interruption
	if errors.As(context.Cause(ctx), &stopped) && !errors.As(err, new(exitStatus)) {
		err = stopped
	}
	return &verbError{err}
}

// usage is bad input that only the verb can tell.
func usage(format string, args ...any) *events.Error {
	return events.Errorf(events.CodeInvalidRequest, events.LayerGate, format, args...)
}

// session is --session for the verbs that need one.
func (a *app) session(flag string) string {
	v := a.settings.Value(config.Session)
	if flag != "" && v.Origin.Layer != config.LayerPin {
		return flag
	}
	return v.Text
}

// milliseconds is d for a request, or nil for 0.
func milliseconds(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := max(d.Milliseconds(), 1)
	return &ms
}
