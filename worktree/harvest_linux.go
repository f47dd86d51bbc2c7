package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// harvest is what a subagent's git directory holds that the user's does not. The
// directory is hostile: files are read one by one, no link is followed, and git
// only ever sees copies of its objects, as objects to check.
type harvest struct {
	// head is the commit of HEAD, empty if there is none.
	head string
	// refs are branches, tags and stash that were made or moved, by what follows
	// refs/ in their names.
	refs map[string]string
	// index is a commit of what is staged, empty if that is what was at the start.
	index string
}

// Bounds on what is read of a git directory.
const (
	maxRefs       = 20_000
	maxRefFile    = 1 << 10
	maxPackedRefs = 64 << 20
	maxObjects    = 2_000_000
)

// scratchName is the directory that takes objects of the subagent while they are
// brought over.
const scratchName = "objects"

// ownGit is the subagent's git directory as open for reading.
type ownGit struct {
	dir    *os.File
	format string
}

func (o *ownGit) read(name string, most int64) ([]byte, error) {
	fd, err := beneath(o.dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > most {
		return nil, fmt.Errorf("%s is no file of a git directory", name)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// harvest reads the subagent's git directory, brings the objects over that are new
// and returns what leads to them.
func (s *saver) harvest(ctx context.Context) (*harvest, error) {
	h := &harvest{head: s.base[RefHead], refs: make(map[string]string)}
	dir, err := os.OpenFile(filepath.Join(s.top, ".git"), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if absent(err) {
		return h, nil // destroyed, or replaced by something else: the files are saved
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	own := &ownGit{dir, s.rec.ObjectFormat}
	refs, err := own.refs()
	if err != nil {
		return nil, err
	}
	if head := own.head(refs); head != "" {
		h.head = head
	}
	before, err := s.refsBefore()
	if err != nil {
		return nil, err
	}
	for name, oid := range refs {
		if before[name] != oid {
			h.refs[strings.TrimPrefix(name, "refs/")] = oid
		}
	}
	return h, s.bringObjects(ctx, own, h)
}

// refsBefore are the refs that the subagent began with.
func (s *saver) refsBefore() (map[string]string, error) {
	body, err := os.ReadFile(filepath.Join(s.root.Dir(s.rec.ID), carriedRefs))
	if err != nil {
		return nil, err
	}
	refs := make(map[string]string)
	for line := range strings.Lines(string(body)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs[name] = oid
	}
	return refs, nil
}

// refs reads branches, tags and stash: packed ones, and loose ones over them.
func (o *ownGit) refs() (map[string]string, error) {
	refs := make(map[string]string)
	wanted := func(name string) bool {
		return validRef(name) && (strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") || name == "refs/stash")
	}
	packed, err := o.read("packed-refs", maxPackedRefs)
	if err != nil && !absent(err) {
		return nil, err
	}
	for line := range strings.Lines(string(packed)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if validOID(oid, o.format) && wanted(name) {
			refs[name] = oid
		}
	}
	level := []string{"refs/heads/", "refs/tags/", "refs/stash"}
	for seen := 0; len(level) > 0; seen++ {
		if seen > maxRefs {
			return nil, errors.New("its git directory has too many refs")
		}
		name := level[0]
		level = level[1:]
		if d, ok := strings.CutSuffix(name, "/"); ok {
			below, err := namesBeneath(o.dir, d)
			if err != nil && !absent(err) {
				return nil, err
			}
			level = append(level, below...)
			continue
		}
		body, err := o.read(name, maxRefFile)
		if oid := strings.TrimSpace(string(body)); err == nil && validOID(oid, o.format) && wanted(name) {
			refs[name] = oid
		}
	}
	return refs, nil
}

// head is the commit that HEAD leads to.
func (o *ownGit) head(refs map[string]string) string {
	body, err := o.read("HEAD", maxRefFile)
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(body))
	if name, ok := strings.CutPrefix(text, "ref:"); ok {
		return refs[strings.TrimSpace(name)]
	}
	if validOID(text, o.format) {
		return text
	}
	return ""
}

// bringObjects imports the objects that the subagent made and h leads to.
func (s *saver) bringObjects(ctx context.Context, own *ownGit, h *harvest) error {
	dir := s.root.Dir(s.rec.ID)
	scratch := filepath.Join(dir, scratchName)
	if err := os.RemoveAll(scratch); err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	count, packs, err := s.linkObjects(ctx, own, scratch)
	if err != nil {
		return err
	}
	if count > 0 {
		s.out.keepFor("git objects")
	}
	g := s.clean("")
	inner := g
	inner.Objects = scratch
	for _, p := range packs {
		// Its own index of the pack is not believed.
		if err := inner.Run(ctx, Call{}, "index-pack", "-o", strings.TrimSuffix(p, ".pack")+".idx", p); err != nil {
			return err
		}
	}
	if err := s.stage(ctx, own, inner, h); err != nil {
		s.out.keepFor("what is staged: %v", err)
	}
	var tips []string
	for _, oid := range h.refs {
		tips = append(tips, oid)
	}
	if h.head != "" && h.head != s.base[RefHead] {
		tips = append(tips, h.head)
	}
	if h.index != "" {
		tips = append(tips, h.index)
	}
	if len(tips) == 0 {
		return nil
	}
	sort.Strings(tips)
	if count > 0 || h.index != "" {
		if err := s.transfer(ctx, inner, g, tips); err != nil {
			return err
		}
	}
	// Everything they lead to has to be in the user's repository itself.
	in := strings.NewReader(strings.Join(tips, "\n") + "\n" + s.known())
	if err := g.Run(ctx, Call{Stdin: in}, "rev-list", "--objects", "--quiet", "--stdin"); err != nil {
		return err
	}
	return nil
}

// known are the lines that tell git what the user's repository has for certain.
func (s *saver) known() string {
	var b strings.Builder
	for _, name := range []string{RefHead, RefIndex, RefTree, refHeld} {
		if oid := s.base[name]; oid != "" {
			b.WriteString("^" + oid + "\n")
		}
	}
	return b.String()
}

// transfer packs what tips lead to and has git check and store it.
func (s *saver) transfer(ctx context.Context, from, to Git, tips []string) error {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		in := strings.NewReader(strings.Join(tips, "\n") + "\n" + s.known())
		var failed error
		if err := from.Run(ctx, Call{Stdin: in, Stdout: w}, "pack-objects", "--revs", "--stdout", "-q"); err != nil {
			failed = err
		}
		w.CloseWithError(failed) // never fails
		packed <- failed
	}()
	var stored error
	if err := to.Run(ctx, Call{Stdin: r}, "index-pack", "--stdin", "--strict"); err != nil {
		stored = err
	}
	r.CloseWithError(io.ErrClosedPipe)
	if err := <-packed; err != nil {
		return err
	}
	return stored
}

// linkObjects gives the objects of the subagent's git directory second names in
// scratch: regular files with the names of objects and nothing else, so none of its
// alternates and links counts.
func (s *saver) linkObjects(ctx context.Context, own *ownGit, scratch string) (count int, packs []string, err error) {
	for _, d := range []string{"pack", "info"} {
		if err := os.MkdirAll(filepath.Join(scratch, d), 0o700); err != nil {
			return 0, nil, err
		}
	}
	borrowed, err := os.ReadFile(filepath.Join(s.root.cleanGit(s.rec.ID), "objects/info/alternates"))
	if err == nil {
		err = os.WriteFile(filepath.Join(scratch, "info/alternates"), borrowed, 0o600)
	}
	if err != nil {
		return 0, nil, err
	}
	dirs, err := namesBeneath(own.dir, "objects")
	if err != nil {
		if absent(err) {
			return 0, nil, nil
		}
		return 0, nil, err
	}
	for _, d := range dirs {
		d = strings.TrimSuffix(d, "/")
		_, short := split(d)
		if short != "pack" && !(len(short) == 2 && isHex(short)) {
			continue
		}
		names, err := namesBeneath(own.dir, d)
		if absent(err) {
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		for _, p := range names {
			_, name := split(p)
			if !objectName(short, name, own.format) || short == "pack" && s.isTagPack(name) {
				continue
			}
			if count++; count > maxObjects {
				return 0, nil, errors.New("its git directory has too many objects")
			}
			if err := ctx.Err(); err != nil {
				return 0, nil, context.Cause(ctx)
			}
			to := filepath.Join(scratch, short, name)
			if err := linkBeneath(own.dir, d, name, to); err != nil {
				return 0, nil, fmt.Errorf("take the object %s/%s: %w", short, name, err)
			}
			if short == "pack" {
				packs = append(packs, to)
			}
		}
	}
	return count, packs, nil
}

// isTagPack reports whether a pack is the one with tags that was there at the start.
func (s *saver) isTagPack(name string) bool {
	_, err := os.Lstat(filepath.Join(s.root.Dir(s.rec.ID), tagPacks, name))
	return err == nil
}

// objectName reports whether a file in objects/dir can hold objects.
func objectName(dir, name, format string) bool {
	if dir == "pack" {
		return strings.HasPrefix(name, "pack-") && strings.HasSuffix(name, ".pack") && isHex(strings.TrimSuffix(name[5:], ".pack"))
	}
	return validOID(dir+name, format)
}

func isHex(s string) bool {
	for i := range len(s) {
		if strings.IndexByte("0123456789abcdef", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// linkBeneath gives a regular file a second name. A link of any kind is refused.
func linkBeneath(top *os.File, dir, name, to string) error {
	fd, err := beneath(top, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := unix.Linkat(fd, name, unix.AT_FDCWD, to, 0); err != nil {
		return err
	}
	st, err := os.Lstat(to)
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("it is no file but %v", st.Mode().Type())
	}
	if err == nil && st.Mode().Perm()&0o400 == 0 {
		err = fs.ErrPermission
	}
	return err
}

// stage writes a commit of what is staged into scratch, unless that is what was at
// the start.
func (s *saver) stage(ctx context.Context, own *ownGit, inner Git, h *harvest) error {
	body, err := own.read("index", maxIndex)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	first, err := os.ReadFile(filepath.Join(s.root.Dir(s.rec.ID), firstIndex))
	if err == nil && string(first) == indexSum(body, own.format) {
		return nil // it was not written since
	}
	inner.Index = filepath.Join(s.root.Dir(s.rec.ID), "staged.index")
	defer os.Remove(inner.Index)
	if err := os.WriteFile(inner.Index, body, 0o600); err != nil {
		return err
	}
	tree, e := inner.Line(ctx, "write-tree")
	if e != nil {
		return e
	}
	was, e := inner.Line(ctx, "rev-parse", s.base[RefIndex]+"^{tree}")
	if e != nil {
		return e
	}
	if tree == was && h.head == s.base[RefHead] {
		return nil
	}
	h.index, err = commitTree(ctx, inner, tree, "hayward: what "+s.rec.ID+" had staged\n", time.Now(), h.head)
	return err
}
