package spawner

import (
	"path/filepath"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// toolPath is the PATH whose directories a profile opens that does not open
// everything for reading, with that of the program behind it: what is in
// PATH is often a link to where the program is installed.
func toolPath(req events.Spawn) string {
	dirs := path(req.Env)
	if dir := installedIn(req); dir != "" {
		dirs += string(filepath.ListSeparator) + dir
	}
	return dirs
}

// installedIn is the directory that a program in PATH is installed in: the
// node_modules around it, else its own. Empty for one that is in PATH itself, and
// where that would open a home or everything.
func installedIn(req events.Spawn) string {
	if len(req.Command) == 0 || strings.ContainsRune(req.Command[0], '/') {
		return ""
	}
	for _, dir := range filepath.SplitList(path(req.Env)) {
		if !filepath.IsAbs(dir) {
			continue
		}
		program, err := filepath.EvalSymlinks(filepath.Join(dir, req.Command[0]))
		if err != nil {
			continue
		}
		own := filepath.Dir(program)
		const modules = "/node_modules/"
		if i := strings.Index(program, modules); i >= 0 {
			own = program[:i+len(modules)-1]
		}
		home := filepath.Clean(req.Env["HOME"])
		if own == filepath.Clean(dir) || own == "/" || own == home || strings.HasPrefix(home, own+"/") {
			return ""
		}
		return own
	}
	return ""
}
