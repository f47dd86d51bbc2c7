package daemon

import (
	"os"
	"path/filepath"
)

// program is the path of hayward for programs inside subagents: this one, as far as
// it is still there.
func program() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	return path
}
