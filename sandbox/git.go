package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// repository is what of a git repository matters to a sandbox around its work
// tree. Git is not asked: its answer would depend on what a hostile project says.
type repository struct {
	// open are the directories elsewhere in which a commit is made.
	open []string
	// closed are the files and directories that lead to commands of others: hooks,
	// configuration, the pointers of a linked work tree.
	closed []string
}

// findRepository looks at the top of a workspace. A linked work tree that does
// not belong to its repository is an error; then nothing of it is opened.
func findRepository(workspace string) (repository, error) {
	var r repository
	dot := filepath.Join(workspace, ".git")
	st, err := os.Lstat(dot)
	switch {
	case err != nil:
		return r, nil // no repository
	case st.Mode().IsRegular():
		r.closed = append(r.closed, dot)
		return r, r.linked(dot)
	}
	r.configuration(workspace, filepath.Join(dot, "config"), 0)
	return r, nil
}

// linked follows the pointer of a linked work tree and its way back.
func (r *repository) linked(dot string) error {
	dir, err := pointer(dot, "gitdir: ")
	if err != nil {
		return err
	}
	common, err := pointer(filepath.Join(dir, "commondir"), "")
	if err != nil {
		return err
	}
	back, err := os.ReadFile(filepath.Join(dir, "gitdir"))
	if err != nil {
		return fmt.Errorf("find the way back from %s: %w", dir, err)
	}
	worktrees := filepath.Join(common, "worktrees")
	if strings.TrimSuffix(string(back), "\n") != dot || filepath.Dir(dir) != worktrees {
		return fmt.Errorf("%s is not the directory of the linked work tree %s", dir, filepath.Dir(dot))
	}
	open := []string{dir}
	for _, name := range []string{"objects", "refs", "logs"} {
		path := filepath.Join(common, name)
		switch st, err := os.Lstat(path); {
		case err == nil && st.IsDir():
			open = append(open, path)
		case name != "logs":
			return fmt.Errorf("%s is not a repository: %s is no directory", common, path)
		}
	}
	r.open = open
	r.closed = append(r.closed,
		filepath.Join(dir, "commondir"), filepath.Join(dir, "gitdir"), filepath.Join(dir, "config.worktree"),
		filepath.Join(common, "config"), filepath.Join(common, "hooks"))
	r.configuration(filepath.Dir(dot), filepath.Join(common, "config"), 0)
	return nil
}

// pointer reads a one-line file that names a directory and returns it canonical.
func pointer(path, prefix string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 8192))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	name, ok := strings.CutPrefix(strings.TrimSuffix(string(b), "\n"), prefix)
	if !ok || name == "" || strings.ContainsAny(name, "\n\x00") {
		return "", fmt.Errorf("%s names no directory", path)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(path), name)
	}
	resolved, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", fmt.Errorf("follow %s: %w", path, err)
	}
	return resolved, nil
}

// maxIncludes is how deep configuration files may include one another, as in git.
const maxIncludes = 10

// configuration closes what a configuration file leads to: the directory that
// core.hooksPath names, and the files that it includes, with what those lead to.
// Only the plain form of a file is understood: one setting on a line.
func (r *repository) configuration(workspace, config string, depth int) {
	f, err := os.OpenFile(config, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	section := ""
	for lines := bufio.NewScanner(io.LimitReader(f, 1<<20)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line, "]")
			section, line = strings.ToLower(strings.TrimLeft(head, "[")), strings.TrimSpace(rest)
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		value = settingPath(value)
		switch key = strings.ToLower(strings.TrimSpace(key)); {
		case value == "":
		case section == "core" && key == "hookspath":
			r.closed = append(r.closed, absolute(workspace, value))
		case (section == "include" || strings.HasPrefix(section, "includeif ")) && key == "path":
			path := absolute(filepath.Dir(config), value)
			r.closed = append(r.closed, path)
			if depth < maxIncludes {
				r.configuration(workspace, path, depth+1)
			}
		}
	}
}

// settingPath is the path in the value of a setting, without quotes and comment.
func settingPath(value string) string {
	value = strings.TrimSpace(value)
	if quoted, ok := strings.CutPrefix(value, `"`); ok {
		value, _, _ = strings.Cut(quoted, `"`)
	} else if i := strings.IndexAny(value, "#;"); i >= 0 {
		value = strings.TrimSpace(value[:i])
	}
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		value = filepath.Join(home, rest)
	}
	return value
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
