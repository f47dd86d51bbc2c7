package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// survey is what a working tree holds, compared with an index. No symbolic link
// is followed, in no component: what lies behind one is not in the tree.
type survey struct {
	// stats are those of the index's entries; mode 0 is a file that is not there.
	stats []unix.Stat_t
	// others are the files that the index does not have and no pattern ignores,
	// ignored those that one does, a directory of them once, with a slash at its
	// end. Both are sorted.
	others, ignored []string
	// embedded are directories with a repository of their own, special are files
	// of which git keeps nothing: sockets, devices, named pipes.
	embedded, special []string
	// unreadable are directories that could not be listed.
	unreadable []string
	// dirs are the directories that hold what the index has, with their modes.
	dirs map[string]uint32
}

// surveyor makes a survey. Its workers share the fields under mu.
type surveyor struct {
	top      *os.File
	index    *index
	children map[string]map[string]int // by directory, by name: the entry
	subdirs  map[string]bool           // directories that hold entries
	skip     func(string) bool

	mu  sync.Mutex
	out survey // guarded by mu, but for stats: each element has one writer
	err error  // the first; guarded by mu
}

// look surveys the tree at top. clean is the git that knows what is ignored; skip
// leaves out what is not of the tree.
func look(ctx context.Context, top string, x *index, clean Git, skip func(string) bool) (*survey, error) {
	dir, err := os.OpenFile(top, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	s := &surveyor{top: dir, index: x, children: make(map[string]map[string]int), subdirs: make(map[string]bool), skip: skip}
	s.out.stats = make([]unix.Stat_t, len(x.entries))
	s.out.dirs = make(map[string]uint32)
	s.arrange()
	dirs := make([]string, 0, len(s.subdirs))
	for d := range s.subdirs {
		dirs = append(dirs, d)
	}
	if err := parallel(ctx, len(dirs), func(i int) error { return s.visit(dirs[i]) }); err != nil {
		return nil, err
	}
	if err := s.sort(ctx, clean); err != nil {
		return nil, err
	}
	out := &s.out
	for _, list := range []*[]string{&out.others, &out.ignored, &out.embedded, &out.special, &out.unreadable} {
		slices.Sort(*list)
	}
	return out, nil
}

// arrange groups the entries by directory.
func (s *surveyor) arrange() {
	s.subdirs["."] = true
	last, names := "", map[string]int(nil)
	for i := range s.index.entries {
		d, name := split(s.index.entries[i].path)
		if names == nil || d != last {
			if names = s.children[d]; names == nil {
				names = make(map[string]int)
				s.children[d] = names
				for up := d; !s.subdirs[up]; up, _ = split(up) {
					s.subdirs[up] = true
				}
			}
			last = d
		}
		names[name] = i
	}
}

// split is path.Split with "." for the top.
func split(p string) (dir, name string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i], p[i+1:]
	}
	return ".", p
}

// join is path.Join for clean parts, of which the first may be ".".
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// beneath opens a path below a directory without following any link.
func beneath(dir *os.File, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
			Flags:   uint64(flags | unix.O_CLOEXEC),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return fd, err
		}
	}
}

// absent reports whether an error says that there is no such file in the tree.
func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV)
}

// open opens a directory of the tree and lists it.
func (s *surveyor) open(d string) (*os.File, []os.DirEntry, error) {
	fd, err := beneath(s.top, d, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), d)
	list, err := f.ReadDir(-1)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, list, nil
}

// visit looks at one directory that holds entries.
func (s *surveyor) visit(d string) error {
	f, list, err := s.open(d)
	if err != nil {
		return s.unlisted(d, err)
	}
	defer f.Close()
	names := s.children[d]
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	mode := st.Mode
	var others, special, embedded []string
	for _, e := range list {
		name := e.Name()
		p := join(d, name)
		if name == ".git" {
			if d != "." {
				embedded = append(embedded, d+"/")
			}
			continue
		}
		if i, ok := names[name]; ok {
			switch err := unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); {
			case absent(err):
			case err != nil:
				return fmt.Errorf("look at %s: %w", p, err)
			case gitMode(st.Mode) != 0:
				s.out.stats[i] = st
				continue
			}
		}
		switch {
		case s.skip != nil && s.skip(p):
		case e.IsDir() && s.subdirs[p]:
		case e.IsDir():
			others = append(others, p+"/")
		case e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0:
			others = append(others, p)
		default:
			special = append(special, p)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.dirs[d] = mode
	s.out.others = append(s.out.others, others...)
	s.out.special = append(s.out.special, special...)
	s.out.embedded = append(s.out.embedded, embedded...)
	return nil
}

// unlisted notes a directory that is not there, or cannot be listed.
func (s *surveyor) unlisted(d string, err error) error {
	switch {
	case absent(err):
		return nil
	case errors.Is(err, fs.ErrPermission):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.out.unreadable = append(s.out.unreadable, d)
		return nil
	}
	return fmt.Errorf("list %s: %w", d, err)
}

// sort tells the ignored ones of others apart and lists the directories that are
// not ignored, level by level: what is in an ignored one is never looked at.
func (s *surveyor) sort(ctx context.Context, clean Git) error {
	level := s.out.others
	s.out.others = nil
	for len(level) > 0 {
		ignored, err := ignoredOf(ctx, clean, level)
		if err != nil {
			return err
		}
		var next []string
		for _, p := range level {
			switch {
			case ignored[strings.TrimSuffix(p, "/")]:
				s.out.ignored = append(s.out.ignored, p)
			case !strings.HasSuffix(p, "/"):
				s.out.others = append(s.out.others, p)
			default:
				below, err := s.list(strings.TrimSuffix(p, "/"))
				if err != nil {
					return err
				}
				next = append(next, below...)
			}
		}
		level = next
	}
	return nil
}

// list lists a directory that holds no entries.
func (s *surveyor) list(d string) ([]string, error) {
	f, list, err := s.open(d)
	if err != nil {
		return nil, s.unlisted(d, err)
	}
	defer f.Close()
	var out []string
	for _, e := range list {
		p := path.Join(d, e.Name())
		switch {
		case e.Name() == ".git":
			s.out.embedded = append(s.out.embedded, d+"/")
			return nil, nil
		case s.skip != nil && s.skip(p):
		case e.IsDir():
			out = append(out, p+"/")
		case e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0:
			out = append(out, p)
		default:
			s.out.special = append(s.out.special, p)
		}
	}
	return out, nil
}

// ignoredOf asks git which of the paths its patterns ignore.
func ignoredOf(ctx context.Context, clean Git, paths []string) (map[string]bool, error) {
	var in strings.Builder
	for _, p := range paths {
		in.WriteString("./" + strings.TrimSuffix(p, "/") + "\x00") // a path, whatever it begins with
	}
	// check-ignore knows no literal paths; it takes none for a pattern either.
	call := Call{Stdin: strings.NewReader(in.String()), Env: []string{"GIT_LITERAL_PATHSPECS=0"}}
	out, err := clean.OutputOf(ctx, call, "check-ignore", "-z", "--stdin", "--no-index")
	if err != nil && ExitStatus(err) != 1 { // 1: none is
		return nil, err
	}
	ignored := make(map[string]bool)
	for _, p := range fields(out) {
		ignored[strings.TrimPrefix(p, "./")] = true
	}
	return ignored, nil
}

// parallel calls do for 0 to n-1 on as many goroutines as there are processors,
// and returns the first error once all have ended.
func parallel(ctx context.Context, n int, do func(i int) error) error {
	const chunk = 16
	var (
		mu    sync.Mutex
		next  int
		first error
		wg    sync.WaitGroup
	)
	take := func() (from, to int) {
		mu.Lock()
		defer mu.Unlock()
		if first != nil || ctx.Err() != nil {
			return 0, 0
		}
		from = next
		next = min(n, next+chunk)
		return from, next
	}
	for range min(runtime.GOMAXPROCS(0), (n+chunk-1)/chunk) {
		wg.Go(func() {
			for {
				from, to := take()
				if from == to {
					return
				}
				for i := from; i < to; i++ {
					if err := do(i); err != nil {
						mu.Lock()
						if first == nil {
							first = err
						}
						mu.Unlock()
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if first == nil {
		first = context.Cause(ctx)
	}
	return first
}

// problem wraps what went wrong with a tree's files.
func problem(id, what string, err error) *events.Error {
	var typed *events.Error
	if errors.As(err, &typed) && typed.Code != events.CodeInternal {
		return typed
	}
	code := events.CodeWorktreeFailed
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		code = events.CodeStorageFull
	}
	return events.Errorf(code, events.LayerWorkspace, "worktree %s: %s: %w", id, what, err)
}
