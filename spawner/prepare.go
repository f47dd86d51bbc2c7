package spawner

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/internal/tempdir"
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

	if err := c.unmoved(); err != nil {
		return err
	}
	if err := c.findSpace(); err != nil {
		return err
	}
	if err := c.makeTempDir(); err != nil {
		return err
	}
	inputs, inputErr := c.inputs()
	if inputErr != nil {
		return inputErr
	}
	kept, homeErr := c.makeHome()
	if homeErr != nil {
		return homeErr
	}
	state, stateErr := c.makeStateDir()
	if stateErr != nil {
		return stateErr
	}
	kept = append(kept, state...)
	if err := c.bring(); err != nil {
		return err
	}
	req := c.spec.Request
	profiles, profilesErr := loadProfiles(c.s.cfg.Profiles, req)
	if profilesErr != nil {
		return profilesErr
	}
	confinement := sandbox.Request{
		Profile:     req.Sandbox,
		Profiles:    profiles,
		BestEffort:  req.SandboxBestEffort,
		Workspace:   c.space.workspace,
		Cwd:         c.space.cwd,
		Home:        req.Env["HOME"],
		TempDir:     c.tempDir,
		TempRoot:    filepath.Dir(c.tempDir),
		Path:        toolPath(req),
		Protected:   c.s.cfg.Protected,
		CacheRoot:   c.s.cfg.CacheRoot,
		ChildBinary: c.s.cfg.ChildBinary,
		AddDirs:     req.AddDirs,
		Deny:        slices.Concat(req.Deny, c.secrets(profiles)),
		Hidden:      c.s.cfg.Hidden,
		Bus:         c.s.cfg.BusPath,
		MakeHooks:   true,
		Inputs:      inputs,
		Kept:        kept,
		Loopback:    c.runsAgent() && c.spec.Agent.Access == events.AccessGateway,
	}
	c.confine(&confinement)
	c.showProgram(&confinement)
	if err := c.inherit(&confinement); err != nil {
		return err
	}
	plan, planErr := sandbox.Compile(confinement, c.s.cfg.Support)
	if planErr != nil {
		return planErr
	}
	c.plan = plan
	c.onUndo(func() { plan.Close() })
	if err := c.inherited(confinement); err != nil {
		return err
	}
	if err := c.bequeath(); err != nil {
		return err
	}
	if err := c.setUpAgent(); err != nil {
		return err
	}
	if err := c.setUp(); err != nil {
		return err
	}

	c.token = newCredential()
	c.s.cfg.Credentials.Grant(c.spec.ID, c.token.hash)
	c.onUndo(func() { c.s.cfg.Credentials.Revoke(c.spec.ID) })
	return nil
}

// Clear removes what an earlier coordinator may have prepared for a child that is
// in no record. It is called before anything is started.
func (s *Spawner) Clear(id string) {
	for _, root := range tempdir.Roots(s.cfg.TempRoot) {
		// The name follows from the id, so that what a coordinator left that died
		// before it recorded the directory is found.
		if dir := filepath.Join(root, id); tempdir.Own(root) && tempdir.Own(dir) {
			removeTemp(dir, s.cfg.Log)
		}
	}
	s.clearCopies(id)
	s.clearGroups(id)
	s.clearTree(id)
}

// makeTempRoot makes the directory of all TMPDIRs where it is missing. Once
// something is in the way of the configured one, another is used to the end.
func (s *Spawner) makeTempRoot() (string, error) {
	s.tempMu.Lock()
	defer s.tempMu.Unlock()
	root, err := tempdir.MakeRoot(s.tempRoot)
	if err != nil {
		return "", err
	}
	if root != s.tempRoot {
		s.cfg.Log.Warn("the root of the temporary directories is not a directory of this user; another is used",
			zap.String("dir", s.tempRoot), zap.String("used", root))
		s.tempRoot = root
	}
	return root, nil
}

// leaveTempRoot removes the roots that were made in the place of the configured
// one, by this spawner or one that was killed. Those in which children that go on
// have their TMPDIRs are left; another spawner makes its own again.
func (s *Spawner) leaveTempRoot() {
	s.tempMu.Lock()
	defer s.tempMu.Unlock()
	for _, root := range tempdir.Roots(s.cfg.TempRoot) {
		if root == s.cfg.TempRoot {
			continue
		}
		if err := os.Remove(root); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.cfg.Log.Info("root of the temporary directories left", zap.String("dir", root), zap.Error(err))
		}
	}
}

func (c *child) makeTempDir() *events.Error {
	var dir string
	root, err := c.s.makeTempRoot()
	if err == nil {
		dir = filepath.Join(root, c.spec.ID)
		err = os.Mkdir(dir, 0o700)
	}
	if dir != "" && errors.Is(err, fs.ErrExist) && tempdir.Own(dir) {
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
	// By descriptor, and never through a link: other subagents of the user can put
	// one in the place of anything in /tmp.
	below, err := openBelow(c.tempDir, "inputs")
	if err != nil {
		return nil, events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: make the inputs' directory: %w", c.spec.ID, err)
	}
	defer below.Close()
	var binds []sandbox.Bind
	for name, id := range c.spec.Request.Inputs {
		source := c.outputPath(id)
		if _, err := os.Stat(source); err != nil {
			return nil, events.Errorf(events.CodeInputMissing, events.LayerGate, "start %s: input %s: %w", c.spec.ID, name, err)
		}
		fd, err := unix.Openat(int(below.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: input %s: %w", c.spec.ID, name, err)
		}
		unix.Close(fd)
		binds = append(binds, sandbox.Bind{Source: source, Target: filepath.Join(c.tempDir, "inputs", name)})
	}
	return binds, nil
}

// openBelow makes and opens a directory in dir, neither of them through a link.
func openBelow(dir, name string) (*os.File, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Open(dir, flags|unix.O_PATH, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(at)
	path := filepath.Join(dir, name)
	if err := unix.Mkdirat(at, name, 0o700); err != nil {
		return nil, &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	fd, err := unix.Openat(at, name, flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// unmoved refuses a start whose directories are not those that were accepted:
// [Resolve] made the paths canonical, so a link on the way appeared since.
func (c *child) unmoved() *events.Error {
	req := c.spec.Request
	for _, path := range append([]string{req.Workspace, req.Cwd}, req.AddDirs...) {
		now, err := filepath.EvalSymlinks(path)
		if err != nil {
			return events.Errorf(events.CodeCwdMissing, events.LayerWorkspace, "start %s: %w", c.spec.ID, err)
		}
		if now != path {
			return events.Errorf(events.CodeWorkspaceRefused, events.LayerWorkspace,
				"start %s: %s leads to %s now, which is not what was accepted", c.spec.ID, path, now).
				WithRemedy("spawn it again if that is meant")
		}
	}
	return nil
}

// inputPath is where the command finds an input: bound below its TMPDIR, or the
// file itself where there is no mount namespace.
func (c *child) inputPath(name, id string) string {
	if c.plan.SysProcAttr().Cloneflags&unix.CLONE_NEWNS != 0 {
		return c.plan.Inside(filepath.Join(c.tempDir, "inputs", name))
	}
	return c.outputPath(id)
}

// outputPath is where the whole output of a subagent is: the answer of an agent, else
// its stdout.
func (c *child) outputPath(id string) string {
	dir := filepath.Join(c.s.cfg.Root.Path(), id)
	if answer := filepath.Join(dir, rundir.AnswerFile); isFile(answer) {
		return answer
	}
	return filepath.Join(dir, rundir.StdoutFile)
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}
