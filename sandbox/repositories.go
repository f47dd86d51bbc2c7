package sandbox

import (
	"os"
	"path/filepath"
)

// The search for repositories below the top of a workspace ends at so many entries
// or repositories. It costs each start, so it is a short one.
const (
	maxNestedEntries = 5000
	maxNested        = 32
)

// nestedRepositories finds the directories of git repositories below the top of a
// workspace, those nearest to it first, with the .git files of linked work trees
// and submodules. It reports whether it saw everything.
func nestedRepositories(workspace string, entries int) (dirs, files []string, all bool) {
	for queue := []string{workspace}; len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		list, err := os.ReadDir(dir)
		if err != nil {
			continue // nobody of this user reaches it
		}
		for _, e := range list {
			if entries--; entries < 0 || len(dirs)+len(files) >= maxNested {
				return dirs, files, false
			}
			path := filepath.Join(dir, e.Name())
			switch {
			case e.Name() != ".git":
				if e.IsDir() {
					queue = append(queue, path)
				}
			case dir == workspace:
				// It is looked at on its own.
			case e.IsDir():
				// One that is no repository yet may become one inside.
				if _, err := os.Lstat(filepath.Join(path, "HEAD")); err == nil {
					dirs = append(dirs, path)
				}
			case e.Type().IsRegular():
				files = append(files, path)
				if target, err := pointer(path, "gitdir: "); err == nil && within(target, workspace) && target != workspace {
					dirs = append(dirs, target)
				}
			}
		}
	}
	return dirs, files, true
}

// closeNested adds what leads to commands in the repositories further down.
func (out *roots) closeNested() []string {
	dirs, files, all := nestedRepositories(out.workspace, maxNestedEntries)
	if !all {
		out.gaps = append(out.gaps, GapNested)
	}
	closed := files
	for _, dir := range dirs {
		for _, name := range []string{"hooks", "config", "commondir", "config.worktree"} {
			closed = append(closed, filepath.Join(dir, name))
		}
	}
	return closed
}
