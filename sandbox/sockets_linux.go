package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hostSockets returns the sockets in the file system that someone listens on
// and that this process could connect to, canonical and sorted, without those
// in a directory of except and without those of open.
func hostSockets(except, open []string) ([]string, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("list the host's sockets: %w", err)
	}
	defer f.Close()
	found := make(map[string]struct{})
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 4096), 64<<10)
	for lines.Scan() {
		// Num RefCount Protocol Flags Type St Inode Path; the path may hold spaces.
		line := lines.Text()
		at := strings.Index(line, " /")
		if at < 0 {
			continue
		}
		if path, ok := reachableSocket(line[at+1:]); ok {
			found[path] = struct{}{}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("list the host's sockets: %w", err)
	}
	var out []string
	for path := range found {
		if !slices.Contains(open, path) && !slices.ContainsFunc(except, func(dir string) bool { return within(path, dir) }) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out, nil
}

// reachableSocket returns the canonical path of the socket at path if there is
// one that this process may connect to.
func reachableSocket(path string) (string, bool) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", false
	}
	path = filepath.Join(dir, filepath.Base(path))
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return "", false
	}
	return path, unix.Access(path, unix.W_OK) == nil
}
