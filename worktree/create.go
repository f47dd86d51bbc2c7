package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
)

// CreateDeadline is how long making one tree may take: as long as copying and
// hashing the largest repositories on a busy machine.
const CreateDeadline = 5 * time.Minute

// Request is what a tree is to be made from.
type Request struct {
	ID      string
	Run     int
	Session string
	// Dir is the canonical directory that the subagent would run in without a tree.
	Dir string
	// Home is the user's home directory, for their git configuration.
	Home   string
	Limits Limits
}

// Tree is a live tree. Its owner closes it; that lets go of the lease and deletes
// nothing.
type Tree struct {
	Record
	// Path is the working tree, Cwd the directory in it that the command runs in.
	Path, Cwd string
	// Closed are what of the user's repository nothing inside may write: the git
	// directories, and the working tree unless it was opened on purpose.
	Closed []string
	// Borrowed are the directories of objects that must be readable inside.
	Borrowed []string

	root  Root
	lease *Lock
}

// Close lets go of the tree.
func (t *Tree) Close() { t.lease.Unlock() }

// Events is what the record of the subagent says of a live tree.
func (t *Tree) Events() *events.Worktree {
	return &events.Worktree{Path: t.Path, Repository: t.Repository, BaseCommit: t.BaseCommit, Kept: true}
}

// fault is called before each step of making and saving a tree, with its name: the
// place where tests make a step fail. It is nil outside tests.
var fault func(step string) error

func step(name string) error {
	if fault == nil {
		return nil
	}
	return fault(name)
}

// Create makes the tree of a subagent. All or nothing: on an error no directory
// and no ref of it is left.
func (r Root) Create(ctx context.Context, req Request) (*Tree, *events.Error) {
	if err := checkID(req.ID); err != nil {
		return nil, err
	}
	if within(req.Dir, r.path) {
		return nil, refusedAs("nested", "%s is the working tree of a subagent", req.Dir).
			WithRemedy("name a directory of the repository itself")
	}
	repo, err := inspect(ctx, req.Dir, req.Home, req.ID)
	if err != nil {
		return nil, err
	}
	if err := r.admit(repo, req.Limits); err != nil {
		return nil, err
	}
	m := &maker{root: r, req: req, repo: repo, dir: r.Dir(req.ID)}
	tree, failure := m.make(ctx)
	if failure == nil {
		return tree, nil
	}
	err = problem(req.ID, "make the tree", failure)
	if undone := m.undo(); undone != nil {
		err = err.WithDetail("cleanup", undone.Error())
	}
	return nil, err
}

// within reports whether a path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// maker makes one tree.
type maker struct {
	root Root
	req  Request
	repo *repository
	dir  string

	// made and referred say what is to be undone.
	made, referred bool
	lease          *Lock
	tree           Tree
	excludes       string
	files          carried
}

// undo takes back what was made, on a context of its own: the caller's may be what
// ended the making.
func (m *maker) undo() error {
	ctx, cancel := context.WithTimeout(context.Background(), GitDeadline)
	defer cancel()
	var errs []error
	if m.referred {
		if err := deleteAllRefs(ctx, m.repo.commonDir, m.req.ID); err != nil {
			errs = append(errs, err)
		}
	}
	if m.made {
		errs = append(errs, removeTree(m.root.path, m.req.ID))
	}
	m.lease.Unlock()
	return errors.Join(errs...)
}

// deleteAllRefs deletes the refs of a subagent under the repository's lock.
func deleteAllRefs(ctx context.Context, commonDir, id string) *events.Error {
	l, err := LockRepository(ctx, commonDir, id)
	if err != nil {
		return err
	}
	defer l.Unlock()
	return DeleteRefs(ctx, commonDir, id)
}

func (m *maker) make(ctx context.Context) (*Tree, error) {
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"directory", m.makeDirectory},
		{"copy", m.copy},
		{"git directory", m.makeGit},
		{"baseline", m.baseline},
		{"record", m.record},
	} {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if err := step(s.name); err != nil {
			return nil, err
		}
		if err := s.do(ctx); err != nil {
			return nil, err
		}
	}
	crashpoint.Hit(crashpoint.WorktreeMade)
	return &m.tree, nil
}

// makeDirectory reserves the place: the name is the id, so nobody else's.
func (m *maker) makeDirectory(ctx context.Context) error {
	err := os.Mkdir(m.dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if err := m.clear(ctx); err != nil {
			return err
		}
		err = os.Mkdir(m.dir, 0o700)
	}
	if err != nil {
		return err
	}
	m.made = true
	lease, e := m.root.TryLease(m.req.ID)
	if e != nil {
		return e
	}
	m.lease = lease
	m.tree = Tree{root: m.root, lease: lease, Record: Record{
		ID: m.req.ID, Run: m.req.Run, Session: m.req.Session,
		Repository: m.repo.top, GitDir: m.repo.gitDir, CommonDir: m.repo.commonDir,
		Subdirectory: m.repo.subdirectory, Name: treeName(m.repo.top),
		BaseCommit: m.repo.head, Branch: m.repo.branch, ObjectFormat: m.repo.format,
		State: StateMaking, CreatedAt: time.Now().UTC(),
	}}
	t := &m.tree
	if err := m.root.Write(t.Record); err != nil {
		return err
	}
	t.Path = m.root.Tree(t.Record)
	t.Cwd = filepath.Join(t.Path, t.Subdirectory)
	t.Closed = []string{m.repo.commonDir, m.repo.gitDir, m.repo.top}
	t.Borrowed = m.repo.objects
	m.excludes = m.repo.settings.excludes(m.repo.commonDir)
	if err := makeCleanGit(m.root.cleanGit(t.ID), t.ObjectFormat, m.repo.objects, m.excludes); err != nil {
		return err
	}
	return os.Mkdir(t.Path, 0o755)
}

// clear removes what is left of a tree of the same id whose making was cut off:
// nothing ever ran in it.
func (m *maker) clear(ctx context.Context) error {
	rec, err := m.root.Read(m.req.ID)
	if err == nil && rec.State != StateMaking {
		return fmt.Errorf("%s is there already", m.dir)
	}
	if err := m.root.Undo(ctx, m.req.ID); err != nil {
		return err
	}
	return nil
}

// treeName is how the directory of a tree of the repository is called.
func treeName(top string) string {
	name := filepath.Base(top)
	if !validName(name) || len(name) > 100 {
		return "tree"
	}
	return name
}

// clean is our own git for the tree: objects it makes go into the repository.
func (m *maker) clean(index string) Git {
	return cleanGit(m.root, m.tree.Record, index)
}

func cleanGit(root Root, rec Record, index string) Git {
	return Git{
		Dir: root.cleanGit(rec.ID), WorkTree: root.Tree(rec), Index: index,
		Objects: filepath.Join(rec.CommonDir, "objects"), ID: rec.ID,
	}
}

// makeGit makes the subagent's own git directory.
func (m *maker) makeGit(ctx context.Context) error {
	own := filepath.Join(m.tree.Path, ".git")
	body := m.files.own.encode()
	if err := m.repo.makeOwnGit(own, m.excludes, body); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(m.dir, carriedRefs), []byte(m.repo.refList()), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(m.dir, firstIndex), []byte(indexSum(body, m.repo.format)), 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(m.tree.Cwd, 0o755); err != nil {
		return err
	}
	if err := m.repo.copyTags(ctx, m.clean(""), own); err != nil {
		return err
	}
	// The names of the packs made just now are enough to tell them later.
	packs, err := os.ReadDir(filepath.Join(own, "objects/pack"))
	if err != nil {
		return err
	}
	for _, p := range packs {
		path := filepath.Join(m.dir, tagPacks, p.Name())
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// firstIndex is the file with the checksum of the index that the subagent began
// with, tagPacks the directory with the names of the packs.
// modesFile has the lines of the baseline's message.
const (
	modesFile  = "modes"
	firstIndex = "index.sum"
	tagPacks   = "packs"
)

// carriedRefs is the file that says which refs the subagent began with.
const carriedRefs = "refs"

func (r *repository) refList() string {
	var b strings.Builder
	for _, ref := range r.refs {
		b.WriteString(ref.oid + " " + ref.name + "\n")
	}
	return b.String()
}

// baseline writes the commits of what the subagent begins with and the refs that
// hold them.
func (m *maker) baseline(ctx context.Context) error {
	g := m.clean(m.root.baseIndex(m.req.ID))
	if err := os.WriteFile(g.Index, m.files.base.encode(), 0o600); err != nil {
		return err
	}
	if err := updateIndex(ctx, g, m.files.changed); err != nil {
		return err
	}
	tree, err := g.Line(ctx, "write-tree")
	if err != nil {
		return err
	}
	// The user's staged state. What git notes in this index stays in a copy.
	staged := filepath.Join(m.dir, "staged.index")
	if err := os.WriteFile(staged, m.files.own.encode(), 0o600); err != nil {
		return err
	}
	defer os.Remove(staged)
	index, err := m.clean(staged).Line(ctx, "write-tree")
	if err != nil {
		return err
	}
	when := m.tree.CreatedAt
	refs := make(map[string]string)
	set := func(name, oid string) {
		if oid != "" {
			refs[BaseRef(m.req.ID, name)] = oid
		}
	}
	set(RefHead, m.repo.head)
	var failure error
	commit := func(name, tree, message string) {
		if failure == nil {
			var oid string
			oid, failure = commitTree(ctx, g, tree, message, when, m.repo.head)
			set(name, oid)
		}
	}
	// The end is compared with them, without asking git for the message.
	if err := os.WriteFile(filepath.Join(m.dir, modesFile), []byte(m.files.modes.Message("")), 0o600); err != nil {
		return err
	}
	commit(RefTree, tree, m.files.modes.Message("hayward: what "+m.req.ID+" began with"))
	commit(RefIndex, index, "hayward: what was staged when "+m.req.ID+" began\n")
	if failure != nil {
		return failure
	}
	held, failure := m.repo.held(ctx, g, tree, unixTime(when))
	if failure != nil {
		return failure
	}
	set(refHeld, held)
	return m.refer(ctx, refs, tree, index)
}

// refer sets the refs and makes sure that what they lead to is there: a git gc of
// the user's may have removed new objects before a ref held them.
func (m *maker) refer(ctx context.Context, refs map[string]string, trees ...string) error {
	l, err := LockRepository(ctx, m.repo.commonDir, m.req.ID)
	if err != nil {
		return err
	}
	defer l.Unlock()
	if err := step("refs"); err != nil {
		return err
	}
	m.referred = true
	if err := UpdateRefs(ctx, m.repo.commonDir, m.req.ID, refs); err != nil {
		return err
	}
	crashpoint.Hit(crashpoint.WorktreeReferred)
	for _, tree := range trees {
		if err := present(ctx, m.clean(""), m.repo.head, tree); err != nil {
			return err
		}
	}
	return nil
}

// record makes the tree known.
func (m *maker) record(context.Context) error {
	m.tree.State = StateLive
	m.tree.Bytes, m.tree.Files = m.files.bytes, len(m.files.base.entries)
	if err := m.root.Write(m.tree.Record); err != nil {
		return err
	}
	return nil
}
