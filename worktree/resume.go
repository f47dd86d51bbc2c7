package worktree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
)

// Resumable says why nothing is left to go on from of a subagent's tree: neither its
// directory nor the snapshot of its end. dir is the directory that it would have run
// in without a tree. What it finds may change before [Root.Resume].
func (r Root) Resumable(ctx context.Context, source, dir string) *events.Error {
	rec, err := r.Read(source)
	if err == nil && r.usable(rec) {
		return nil
	}
	at, err := locate(dir)
	if err != nil {
		return err
	}
	refs, err := ListRefs(ctx, at.commonDir, source)
	if err != nil {
		return err
	}
	return whole(source, refs, rec)
}

// usable reports whether a tree has a directory to go on in.
func (r Root) usable(rec Record) bool {
	return (rec.State == StateEnded || rec.State == StateApplied) && r.present(rec)
}

// whole refuses refs that do not hold all that the subagent left.
func whole(source string, refs map[string]string, rec Record) *events.Error {
	gone := func(format string, args ...any) *events.Error {
		return events.Errorf(events.CodeResumeWorktreeGone, events.LayerWorkspace, "worktree %s: "+format, append([]any{source}, args...)...)
	}
	switch {
	case refs["base/"+RefTree] == "" || refs["subagents/"+RefTree] == "":
		return gone("its directory is gone, and %s is not in the repository: it changed nothing, or that was discarded", EndRef(source, RefTree))
	case rec.Problem != nil:
		return gone("its directory is gone or in use, and what it left was not saved completely: %s", rec.Problem.Message)
	}
	return nil
}

// Resume makes the tree of a subagent that goes on from another one: the directory
// of that one if it is there and nobody holds its lease, moved to its new owner, so
// that what git has no place for comes along; else a new directory with the files,
// commits, branches, stash and staged state that the refs of its end hold. If neither is
// to be had it is [events.CodeResumeWorktreeGone]. The refs of the source are not
// changed. The baseline is the source's, so that what both changed is what differs.
//
// All or nothing, as [Root.Create]: on an error the source's directory is where it was.
func (r Root) Resume(ctx context.Context, req Request, source string) (*Tree, *events.Error) {
	for _, id := range []string{req.ID, source} {
		if err := checkID(id); err != nil {
			return nil, err
		}
	}
	repo, err := inspectRefs(ctx, req.Dir, req.Home, req.ID)
	if err != nil {
		return nil, err
	}
	if err := r.admit(repo, req.Limits); err != nil {
		return nil, err
	}
	m := &resumer{maker: maker{root: r, req: req, repo: repo, dir: r.Dir(req.ID)}, source: source}
	tree, failure := m.make(ctx)
	if failure == nil {
		return tree, nil
	}
	err = problem(req.ID, "make the tree from that of "+source, failure)
	if undone := m.undo(); undone != nil {
		err = err.WithDetail("cleanup", undone.Error())
	}
	return nil, err
}

// inspectRefs is inspect for a tree that has none of the user's files: what they are
// in the middle of does not matter.
func inspectRefs(ctx context.Context, dir, home, id string) (*repository, *events.Error) {
	at, err := locate(dir)
	if err != nil {
		return nil, err
	}
	r := &repository{place: at, id: id}
	if r.settings, err = readSettings(ctx, at.gitDir, home, id); err != nil {
		return nil, err
	}
	if err := r.refuseSettings(); err != nil {
		return nil, err
	}
	if err := r.readHead(ctx); err != nil {
		return nil, err
	}
	if err := r.readRefs(ctx); err != nil {
		return nil, err
	}
	r.index = &index{format: r.format}
	r.objects = alternates(r.objectDir(), 0, nil)
	if b, err := os.ReadFile(filepath.Join(r.commonDir, "shallow")); err == nil {
		r.shallow = b
	}
	return r, nil
}

// resumer makes one tree from that of another subagent.
type resumer struct {
	maker
	source string
	// from is the source's record, zero if there is none; refs are those of it.
	from Record
	refs map[string]string
	// moved tells that the directory is the source's.
	moved bool
}

func (m *resumer) make(ctx context.Context) (*Tree, error) {
	var err *events.Error
	if m.refs, err = ListRefs(ctx, m.repo.commonDir, m.source); err != nil {
		return nil, err
	}
	if m.from, err = m.root.Read(m.source); err != nil && err.Code != events.CodeUnknownID {
		return nil, err
	}
	if err := m.makeDirectory(ctx); err != nil {
		return nil, err
	}
	m.tree.ResumedFrom = m.source
	m.tree.BaseCommit = m.refs["base/"+RefHead]
	if m.from.ID != "" {
		m.tree.Branch, m.tree.Subdirectory = m.from.Branch, m.from.Subdirectory
		m.tree.Cwd = filepath.Join(m.tree.Path, m.tree.Subdirectory)
	}
	taken, failure := m.takeOver(ctx)
	if failure == nil && !taken {
		failure = m.rebuild(ctx)
	}
	if failure == nil {
		failure = m.begin()
	}
	if failure != nil {
		return nil, failure
	}
	return &m.tree, nil
}

// begin makes the tree known.
func (m *resumer) begin() error {
	if err := step("resumed record"); err != nil {
		return err
	}
	m.tree.State = StateLive
	m.tree.Bytes, m.tree.Files = m.from.Bytes, m.from.Files
	// What is in the tree is the source's, so no link in it is followed out of it.
	top, err := os.OpenRoot(m.tree.Path)
	if err != nil {
		return err
	}
	defer top.Close()
	if sub := m.tree.Subdirectory; sub != "" {
		if err := top.MkdirAll(sub, 0o755); err != nil {
			return err
		}
	}
	if err := m.root.Write(m.tree.Record); err != nil {
		return err
	}
	return nil
}

func (m *resumer) undo() error {
	if m.moved {
		if err := m.root.giveBack(m.tree.Record); err != nil {
			m.lease.Unlock()
			return err // the files are more than a directory that is left
		}
	}
	return m.maker.undo()
}

// kept are the files of a tree's directory that say what its subagent began with.
var kept = []string{indexFile, modesFile, carriedRefs, tagPacks, includedFile}

// takeOver moves the source's directory, unless it is gone or in use.
func (m *resumer) takeOver(ctx context.Context) (bool, error) {
	// Who resumes, applies, discards or collects the source holds this lock.
	l, err := LockRepository(ctx, m.repo.commonDir, m.req.ID)
	if err != nil {
		return false, err
	}
	defer l.Unlock()
	lease, err := m.root.TryLease(m.source)
	if err != nil {
		return false, nil // in use, or gone with its directory
	}
	defer lease.Unlock()
	if m.from, err = m.root.Read(m.source); err != nil || !m.root.usable(m.from) || m.from.CommonDir != m.repo.commonDir || m.refs["base/"+RefTree] == "" {
		return false, nil
	}
	for _, name := range kept {
		if err := copyPlain(filepath.Join(m.root.Dir(m.source), name), filepath.Join(m.dir, name)); err != nil {
			return false, err
		}
	}
	if err := m.takeRefs(ctx, ""); err != nil {
		return false, err
	}
	if err := os.Remove(m.tree.Path); err != nil {
		return false, err
	}
	m.tree.Name = m.from.Name
	m.tree.Path = m.root.Tree(m.tree.Record)
	m.tree.Cwd = filepath.Join(m.tree.Path, m.tree.Subdirectory)
	m.tree.TakenFrom = m.source
	// Before it moves, so that whoever finds it half done moves it back.
	if err := m.root.Write(m.tree.Record); err != nil {
		return false, err
	}
	m.moved = true
	if err := os.Rename(m.root.Tree(m.from), m.tree.Path); err != nil {
		return false, err
	}
	crashpoint.Hit(crashpoint.WorktreeTaken)
	return true, step("taken over")
}

// giveBack moves the directory of a tree in which nothing ran back to the subagent
// that it was taken from.
func (r Root) giveBack(rec Record) *events.Error {
	if rec.TakenFrom == "" || !r.present(rec) {
		return nil
	}
	from, err := r.Read(rec.TakenFrom)
	if err != nil {
		return err.WithDetail("kept", r.Tree(rec))
	}
	if failure := os.Rename(r.Tree(rec), r.Tree(from)); failure != nil {
		return problem(rec.ID, "give the directory back to "+from.ID, failure).WithDetail("kept", r.Tree(rec))
	}
	return nil
}

// takeRefs gives the new subagent the baseline of the source.
func (m *resumer) takeRefs(ctx context.Context, held string) error {
	refs := make(map[string]string)
	for _, name := range []string{RefHead, RefIndex, RefTree, refHeld} {
		if oid := m.refs["base/"+name]; oid != "" {
			refs[BaseRef(m.req.ID, name)] = oid
		}
	}
	if held != "" {
		refs[BaseRef(m.req.ID, refHeld)] = held
	}
	m.referred = true
	if err := UpdateRefs(ctx, m.repo.commonDir, m.req.ID, refs); err != nil {
		return err
	}
	return nil
}

// copyPlain copies a file or a directory of files. What is not there is no error.
func copyPlain(from, to string) error {
	st, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.IsDir() {
		entries, err := os.ReadDir(from)
		if err == nil {
			err = os.MkdirAll(to, 0o700)
		}
		for _, e := range entries {
			if err == nil {
				err = copyPlain(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
			}
		}
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// now is the time of commits that are made for a tree, in git's form.
func (m *resumer) now() string { return unixTime(time.Now()) }
