package spawner

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/sandbox"
)

// credential is a child's place on the bus.
type credential struct {
	token string
	// hash is the SHA-256 of token, in hex: all that is kept of it.
	hash string
}

func newCredential() credential {
	var b [32]byte
	rand.Read(b[:]) // never fails
	token := hex.EncodeToString(b[:])
	sum := sha256.Sum256([]byte(token))
	return credential{token: token, hash: hex.EncodeToString(sum[:])}
}

// prepare makes everything that the child needs before it is forked. On an
// error the caller unwinds.
func (c *child) prepare() *events.Error {
	if err := CheckHost(c.spec.ID); err != nil { // it may have waited long since it was accepted
		return err
	}
	dir, err := c.s.cfg.Root.Open(c.spec.ID)
	if err != nil {
		return events.Errorf(events.CodeStartFailed, events.LayerCoordinator, "start %s: open the run directory: %w", c.spec.ID, err)
	}
	c.dir = dir
	c.onUndo(func() { dir.Close() })

	if err := c.makeTempDir(); err != nil {
		return err
	}
	inputs, inputErr := c.inputs()
	if inputErr != nil {
		return inputErr
	}
	req := c.spec.Request
	plan, planErr := sandbox.Compile(sandbox.Request{
		Profile:     req.Sandbox,
		BestEffort:  req.SandboxBestEffort,
		Workspace:   req.Workspace,
		Cwd:         req.Cwd,
		Home:        req.Env["HOME"],
		TempDir:     c.tempDir,
		CacheRoot:   c.s.cfg.CacheRoot,
		ChildBinary: c.s.cfg.ChildBinary,
		AddDirs:     req.AddDirs,
		Hidden:      c.s.cfg.Hidden,
		Bus:         c.s.cfg.BusPath,
		Inputs:      inputs,
	}, c.s.cfg.Support)
	if planErr != nil {
		return planErr
	}
	c.plan = plan
	c.onUndo(func() { plan.Close() })

	c.token = newCredential()
	c.s.cfg.Credentials.Grant(c.spec.ID, c.token.hash)
	c.onUndo(func() { c.s.cfg.Credentials.Revoke(c.spec.ID) })
	return nil
}

// tempDirOf is a child's TMPDIR. The name follows from the id, so that what a
// coordinator left that died before it recorded the directory is found.
func (s *Spawner) tempDirOf(id string) string { return filepath.Join(s.cfg.TempRoot, "hayward-"+id) }

// Clear removes what an earlier coordinator may have prepared for a child that is
// in no record. It is called before anything is started.
func (s *Spawner) Clear(id string) {
	if dir := s.tempDirOf(id); ownDirectory(dir) {
		removeTemp(dir, s.cfg.Log)
	}
}

func (c *child) makeTempDir() *events.Error {
	dir := c.s.tempDirOf(c.spec.ID)
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) && ownDirectory(dir) {
		if err = os.RemoveAll(dir); err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	}
	if err != nil {
		return events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: make its TMPDIR: %w", c.spec.ID, err)
	}
	c.tempDir = dir
	c.onUndo(func() { removeTemp(dir, c.log) })
	return nil
}

// ownDirectory reports whether path is a directory, no link, of this user.
func ownDirectory(path string) bool {
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}

// removeTemp removes a child's own TMPDIR. What is left in it is nobody's
// result, so a failure is logged and not told.
func removeTemp(dir string, log *zap.Logger) {
	if err := os.RemoveAll(dir); err != nil {
		log.Warn("TMPDIR not removed", zap.String("dir", dir), zap.Error(err))
	}
}

// inputs prepares the mount points of the spawn's inputs below its TMPDIR.
func (c *child) inputs() ([]sandbox.Bind, *events.Error) {
	if len(c.spec.Request.Inputs) == 0 {
		return nil, nil
	}
	below := filepath.Join(c.tempDir, "inputs")
	if err := os.Mkdir(below, 0o700); err != nil {
		return nil, events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: make the inputs' directory: %w", c.spec.ID, err)
	}
	var binds []sandbox.Bind
	for name, id := range c.spec.Request.Inputs {
		source := c.outputPath(id)
		if _, err := os.Stat(source); err != nil {
			return nil, events.Errorf(events.CodeInputMissing, events.LayerGate, "start %s: input %s: %w", c.spec.ID, name, err)
		}
		target := filepath.Join(below, name)
		if err := os.WriteFile(target, nil, 0o600); err != nil {
			return nil, events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: input %s: %w", c.spec.ID, name, err)
		}
		binds = append(binds, sandbox.Bind{Source: source, Target: target})
	}
	return binds, nil
}

// inputPath is where the command finds an input: bound below its TMPDIR, or the
// file itself where there is no mount namespace.
func (c *child) inputPath(name, id string) string {
	if c.plan.SysProcAttr().Cloneflags&unix.CLONE_NEWNS != 0 {
		return filepath.Join(c.tempDir, "inputs", name)
	}
	return c.outputPath(id)
}

// outputPath is where the whole stdout of a subagent is.
func (c *child) outputPath(id string) string {
	return filepath.Join(c.s.cfg.Root.Path(), id, rundir.StdoutFile)
}
