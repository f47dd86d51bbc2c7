package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// GitDeadline is how long one run of git may take unless [Git.Timeout] says else.
const GitDeadline = 60 * time.Second

// Git says which repository git works on, and for whom. The zero value of each
// member but Dir means that git does without.
type Git struct {
	// Dir is the git directory. Git never looks for one itself.
	Dir string
	// WorkTree is the working tree, Index the index file.
	WorkTree, Index string
	// Objects is where new objects go instead of Dir/objects; Borrow are further
	// directories of objects.
	Objects string
	Borrow  []string
	// Config are further settings, "key=value".
	Config []string
	// Home is set to read the configuration of system and user as well, as git does
	// with that home directory: for git config alone.
	Home string
	// ID is the subagent that errors name.
	ID string
	// Timeout replaces [GitDeadline].
	Timeout time.Duration
}

// Call is one run's input and output. Without Stdout the output is dropped.
type Call struct {
	Stdin  io.Reader
	Stdout io.Writer
	// Env are further variables.
	Env []string
}

// settings make git do what is asked and nothing else: no program that a
// configuration names, no conversion of bytes, no guess about the file system.
var settings = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.splitIndex=false",
	"core.sparseCheckout=false",
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"core.autocrlf=false",
	"core.safecrlf=false",
	"core.fileMode=true",
	"core.symlinks=true",
	"core.ignoreCase=false",
	"core.precomposeUnicode=false",
	"core.trustctime=true",
	"core.checkStat=default",
	"core.quotePath=false",
	"core.logAllRefUpdates=false",
	"core.filesRefLockTimeout=5000",
	"core.packedRefsTimeout=5000",
	"core.alternateRefsCommand=true",
	"credential.helper=",
	"protocol.allow=never",
	"commit.gpgSign=false",
	"log.showSignature=false",
	"submodule.recurse=false",
	"gc.auto=0",
	"maintenance.auto=false",
}

// environment is all that git sees, whatever the caller's is.
func (g Git) environment(extra []string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"LC_ALL=C",
		"TZ=UTC",
		"GIT_DIR=" + g.Dir,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=/bin/false",
		"SSH_ASKPASS=/bin/false",
		"GIT_EDITOR=/bin/false",
		"GIT_PAGER=cat",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_ALLOW_PROTOCOL=none",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_AUTHOR_NAME=Hayward", "GIT_AUTHOR_EMAIL=hayward@localhost",
		"GIT_COMMITTER_NAME=Hayward", "GIT_COMMITTER_EMAIL=hayward@localhost",
	}
	if g.Home == "" {
		env = append(env, "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	} else {
		env = append(env, "HOME="+g.Home)
	}
	if g.WorkTree != "" {
		env = append(env, "GIT_WORK_TREE="+g.WorkTree)
	}
	if g.Index != "" {
		env = append(env, "GIT_INDEX_FILE="+g.Index)
	}
	if g.Objects != "" {
		env = append(env, "GIT_OBJECT_DIRECTORY="+g.Objects)
	}
	if len(g.Borrow) > 0 {
		quoted := make([]string, len(g.Borrow))
		for i, dir := range g.Borrow {
			quoted[i] = quoteAlternate(dir)
		}
		env = append(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(quoted, ":"))
	}
	return append(env, extra...)
}

// quoteAlternate writes a path so that git does not split it at a colon.
func quoteAlternate(path string) string {
	if !strings.ContainsAny(path, ":\"\\\n") {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// Run runs git once. A run that fails, or does not end in time, is a
// [events.CodeGitFailed] that names operation, repository and subagent and
// carries the end of what git said.
func (g Git) Run(ctx context.Context, c Call, args ...string) *events.Error {
	program, err := exec.LookPath("git")
	if err != nil {
		return events.Errorf(events.CodeUnsupported, events.LayerGate, "%s: %w", g.operation(args), err).
			WithRemedy("install git, or spawn with --isolation none")
	}
	limit := g.Timeout
	if limit == 0 {
		limit = GitDeadline
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	full := make([]string, 0, 2*len(settings)+2*len(g.Config)+len(args))
	for _, s := range settings {
		full = append(full, "-c", s)
	}
	for _, s := range g.Config {
		full = append(full, "-c", s)
	}
	cmd := exec.CommandContext(ctx, program, append(full, args...)...)
	cmd.Dir = g.WorkTree
	if cmd.Dir == "" {
		cmd.Dir = g.Dir
	}
	cmd.Env = g.environment(c.Env)
	cmd.Stdin, cmd.Stdout = c.Stdin, c.Stdout
	said := &tail{most: 4 << 10}
	cmd.Stderr = said
	// All that git starts is in its group and ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("not done in time (%s at most): %w", limit, context.Cause(ctx))
	}
	return g.failed(args, err, said.String())
}

// failed describes a run that did not do what it should.
func (g Git) failed(args []string, err error, said string) *events.Error {
	e := events.Errorf(events.CodeGitFailed, events.LayerWorkspace, "%s: %w", g.operation(args), err).
		WithDetail("repository", g.Dir)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		e = e.WithDetail("exit", strconv.Itoa(exit.ExitCode()))
	}
	if said != "" {
		e = e.WithDetail("stderr", said)
	}
	return e.WithRemedy("git fsck in the repository tells whether it is sound")
}

func (g Git) operation(args []string) string {
	name := "git"
	if len(args) > 0 {
		name += " " + args[0]
	}
	if g.ID != "" {
		return "worktree " + g.ID + ": " + name
	}
	return "worktree: " + name
}

// ExitStatus is how git ended in a run that failed, -1 if it did not end by itself.
func ExitStatus(err *events.Error) int {
	var exit *exec.ExitError
	if err != nil && errors.As(err.Unwrap(), &exit) {
		return exit.ExitCode()
	}
	return -1
}

// maxOutput bounds what Output keeps. A list of a million paths is smaller.
const maxOutput = 256 << 20

// Output runs git and returns what it writes.
func (g Git) Output(ctx context.Context, args ...string) ([]byte, *events.Error) {
	return g.OutputOf(ctx, Call{}, args...)
}

// OutputOf is Output with an input. c.Stdout is not used.
func (g Git) OutputOf(ctx context.Context, c Call, args ...string) ([]byte, *events.Error) {
	var out bytes.Buffer
	c.Stdout = &capped{to: &out, left: maxOutput}
	if err := g.Run(ctx, c, args...); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Line is Output without the line end: an object id, a path, a ref.
func (g Git) Line(ctx context.Context, args ...string) (string, *events.Error) {
	out, err := g.Output(ctx, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// capped refuses to take more than it may.
type capped struct {
	to   io.Writer
	left int
}

// Write implements [io.Writer].
func (c *capped) Write(b []byte) (int, error) {
	if len(b) > c.left {
		return 0, errors.New("git wrote too much")
	}
	c.left -= len(b)
	return c.to.Write(b)
}

// tail keeps the end of what is written to it.
type tail struct {
	most int
	kept []byte
}

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

// String is what was kept, as text.
func (t *tail) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "?") }

// fields splits what git ends with NUL.
func fields(b []byte) []string {
	s := strings.TrimSuffix(string(b), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

// userGit is git on the user's repository: for refs and objects, never for files.
func userGit(commonDir, id string) Git {
	return Git{Dir: filepath.Clean(commonDir), ID: id}
}
