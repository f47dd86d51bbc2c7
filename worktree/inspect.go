package worktree

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// repository is a located repository with all that making a tree needs of it.
type repository struct {
	place
	id       string
	format   string
	settings userSettings
	// head is the commit of HEAD, empty if unborn; branch its ref, empty if detached.
	head, branch string
	refs         []userRef
	index        *index
	// objects are the directories to borrow objects from, the repository's first.
	objects []string
	// converts is how bytes in files and in git may differ.
	converts conversion
	shallow  []byte
}

// userRef is one ref of the user's repository.
type userRef struct {
	name, oid string
	// kind is the type of the object; peeled and peeledKind are of what a tag is on.
	kind, peeled, peeledKind string
	symbolic                 string
}

// git is git on the repository for refs and objects.
func (r *repository) git() Git { return userGit(r.commonDir, r.id) }

// objectDir is where the repository's objects are.
func (r *repository) objectDir() string { return filepath.Join(r.commonDir, "objects") }

// inspect reads what there is and refuses by name what a tree cannot hold.
func inspect(ctx context.Context, dir, home, id string) (*repository, *events.Error) {
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
	if err := r.refuseInProgress(); err != nil {
		return nil, err
	}
	if err := r.readIndex(ctx); err != nil {
		return nil, err
	}
	attributes := r.attributes()
	if err := r.refuseFilters(attributes); err != nil {
		return nil, err
	}
	r.converts = r.settings.conversion(attributes)
	if err := r.readHead(ctx); err != nil {
		return nil, err
	}
	if err := r.readRefs(ctx); err != nil {
		return nil, err
	}
	r.objects = alternates(r.objectDir(), 0, nil)
	if b, err := os.ReadFile(filepath.Join(r.commonDir, "shallow")); err == nil {
		r.shallow = b
	}
	return r, nil
}

// refuseSettings reads the format and refuses what a configuration says.
func (r *repository) refuseSettings() *events.Error {
	r.format = "sha1"
	if v, ok := r.settings.last("extensions.objectformat"); ok {
		r.format = strings.ToLower(v)
	}
	if v, ok := r.settings.last("extensions.refstorage"); ok && !strings.EqualFold(v, "files") {
		return refusedAs("ref storage", "%s keeps its refs as %s", r.top, v).
			WithRemedy("git refs migrate --ref-format=files, or use --isolation none")
	}
	if r.format != "sha1" && r.format != "sha256" {
		return refusedAs("object format", "%s has the object format %s", r.top, r.format)
	}
	if r.settings.isTrue("core.bare") && r.gitDir == r.commonDir {
		return refusedAs("bare", "%s is configured as a bare repository", r.commonDir).
			WithRemedy("name a directory in a working tree of it (git worktree add), or use --isolation none")
	}
	if v, ok := r.settings.last("core.worktree"); ok && r.gitDir == r.commonDir {
		if !filepath.IsAbs(v) {
			v = filepath.Join(r.gitDir, v)
		}
		if resolved, err := filepath.EvalSymlinks(v); err != nil || resolved != r.top {
			return refusedAs("forged", "%s is of the working tree %s (core.worktree), not of %s", r.gitDir, v, r.top)
		}
	}
	if r.settings.isTrue("core.sparsecheckout") || r.settings.isTrue("index.sparse") {
		return refusedAs("sparse checkout", "%s is a sparse checkout", r.top).
			WithRemedy("git sparse-checkout disable, or use --isolation none")
	}
	for _, s := range r.settings.all {
		if s.key == "extensions.partialclone" || strings.HasPrefix(s.key, "remote.") && strings.HasSuffix(s.key, ".promisor") {
			return refusedAs("partial clone", "%s is a partial clone: its missing objects could not be fetched from inside", r.top).
				WithRemedy("git fetch --refetch --no-filter and unset extensions.partialClone, or use --isolation none")
		}
	}
	return nil
}

// refuseInProgress refuses a repository in the middle of something.
func (r *repository) refuseInProgress() *events.Error {
	for name, what := range map[string]string{
		"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert",
		"rebase-merge": "rebase", "rebase-apply": "rebase", "sequencer": "sequence of picks",
	} {
		if _, err := os.Lstat(filepath.Join(r.gitDir, name)); err == nil {
			return refusedAs("in progress", "a %s is in progress in %s", what, r.top).
				WithDetail("operation", what).WithRemedy("finish or abort it first, or use --isolation none")
		}
	}
	return nil
}

// readIndex reads the user's index and refuses what is in it.
func (r *repository) readIndex(ctx context.Context) *events.Error {
	path := filepath.Join(r.gitDir, "index")
	x, err := readIndex(path, r.format)
	if err != nil {
		return events.Errorf(events.CodeRepositoryRefused, events.LayerWorkspace, "worktree %s: %w", r.id, err).
			WithDetail("reason", "index").WithRemedy("git status in %s tells whether git can read its index", r.top)
	}
	if x.split {
		if x, err = r.unsplit(ctx, path); err != nil {
			return problem(r.id, "read the split index", err)
		}
	}
	if x.sparse {
		return refusedAs("sparse checkout", "%s has a sparse index", r.top).WithRemedy("git sparse-checkout disable, or use --isolation none")
	}
	for i := range x.entries {
		switch e := &x.entries[i]; {
		case e.mode == modeGitlink:
			return refusedAs("submodules", "%s has submodules: %s", r.top, e.path).WithDetail("path", e.path).
				WithRemedy("use --isolation none")
		case e.stage() != 0:
			return refusedAs("in progress", "%s is not merged in %s", e.path, r.top).WithDetail("path", e.path).
				WithRemedy("resolve the conflicts first, or use --isolation none")
		}
	}
	r.index = x
	return nil
}

// unsplit has git join a split index, in a copy.
func (r *repository) unsplit(ctx context.Context, path string) (*index, error) {
	dir, err := os.MkdirTemp("", "hayward-index-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	copied := filepath.Join(dir, "index")
	if err := os.WriteFile(copied, body, 0o600); err != nil {
		return nil, err
	}
	g := Git{Dir: r.gitDir, Index: copied, WorkTree: r.top, ID: r.id}
	if err := g.Run(ctx, Call{}, "update-index", "--no-split-index", "--index-version", "2"); err != nil {
		return nil, err
	}
	x, err := readIndex(copied, r.format)
	if st, statErr := os.Stat(path); err == nil && statErr == nil {
		x.modTime = st.ModTime()
	}
	return x, err
}

// attributes returns the text of every attributes file that counts.
func (r *repository) attributes() string {
	var b strings.Builder
	own := r.settings.path("core.attributesfile")
	if own == "" {
		own = filepath.Join(r.settings.home, ".config/git/attributes")
	}
	b.WriteString(readSmall(own) + readSmall("/etc/gitattributes") + readSmall(filepath.Join(r.commonDir, "info/attributes")))
	paths := []string{".gitattributes"}
	for i := range r.index.entries {
		if p := r.index.entries[i].path; strings.HasSuffix(p, "/.gitattributes") {
			paths = append(paths, p)
		}
	}
	for _, p := range paths {
		b.WriteString(readBeneath(r.top, p))
	}
	return b.String()
}

// readBeneath returns what is in a small file of a working tree, without
// following links.
func readBeneath(top, path string) string {
	dir, err := os.OpenFile(top, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return ""
	}
	defer dir.Close()
	fd, err := beneath(dir, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxPatterns {
		return ""
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n") + "\n"
}

// refuseFilters refuses files whose bytes a program makes.
func (r *repository) refuseFilters(attributes string) *events.Error {
	for lines := bufio.NewScanner(strings.NewReader(attributes)); lines.Scan(); {
		for _, word := range strings.Fields(lines.Text()) {
			name, ok := strings.CutPrefix(word, "filter=")
			switch {
			case !ok || strings.HasPrefix(lines.Text(), "#"):
			case name == "lfs":
				return refusedAs("LFS", "%s keeps files in Git LFS", r.top).WithRemedy("use --isolation none")
			case slices.ContainsFunc(r.settings.all, func(s setting) bool {
				return s.key == "filter."+name+".clean" || s.key == "filter."+name+".smudge" || s.key == "filter."+name+".process"
			}):
				return refusedAs("filter", "%s has files that the filter %s makes", r.top, name).WithDetail("filter", name).
					WithRemedy("use --isolation none, or unset the filter for this repository")
			}
		}
	}
	return nil
}

// readHead finds out where the user is.
func (r *repository) readHead(ctx context.Context) *events.Error {
	g := Git{Dir: r.gitDir, ID: r.id}
	head, err := g.Line(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	switch {
	case err == nil:
		r.head = head
	case ExitStatus(err) != 1:
		return err
	}
	branch, err := g.Line(ctx, "symbolic-ref", "-q", "HEAD")
	switch {
	case err == nil:
		r.branch = branch
	case ExitStatus(err) != 1:
		return err
	}
	if r.head == "" && r.branch == "" {
		return refusedAs("HEAD", "HEAD of %s leads to no commit", r.top).WithRemedy("check out a commit first")
	}
	return nil
}

// readRefs reads branches, remote-tracking branches and tags.
func (r *repository) readRefs(ctx context.Context) *events.Error {
	const format = "%(refname)%00%(objectname)%00%(objecttype)%00%(*objectname)%00%(*objecttype)%00%(symref)"
	out, err := r.git().Output(ctx, "for-each-ref", "--format="+format, "refs/heads", "refs/remotes", "refs/tags")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		if len(f) == 6 {
			r.refs = append(r.refs, userRef{f[0], f[1], f[2], f[3], f[4], f[5]})
		}
	}
	return nil
}

// alternates returns a directory of objects and those that it borrows from.
func alternates(dir string, depth int, seen []string) []string {
	if depth > 5 || slices.Contains(seen, dir) { // as deep as git goes
		return seen
	}
	seen = append(seen, dir)
	for line := range strings.Lines(readSmall(filepath.Join(dir, "info/alternates"))) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		if resolved, err := filepath.EvalSymlinks(line); err == nil {
			seen = alternates(resolved, depth+1, seen)
		}
	}
	return seen
}
