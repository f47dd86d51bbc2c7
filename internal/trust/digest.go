package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// files are what of a project counts once it is trusted, below its directory.
var files = []string{".hayward", ".claude/agents", ".claude/skills", ".grok", ".codex/agents"}

// Bounds of what is looked at.
const (
	maxFiles = 4096
	maxBytes = 16 << 20
)

// digest is that of everything that counts in a project. Files are opened below the
// project, so a link out of it counts as what cannot be read.
func digest(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum := sha256.New()
	count, left := 0, int64(maxBytes)
	for _, name := range files {
		err := fs.WalkDir(root.FS(), name, func(p string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && p == name {
				return nil
			}
			if err != nil {
				return err
			}
			if count++; count > maxFiles {
				return fmt.Errorf("there are more than %d files", maxFiles)
			}
			fmt.Fprintf(sum, "%q %s\n", p, e.Type())
			if e.IsDir() {
				return nil
			}
			n, err := hashFile(sum, root, p, left)
			left -= n
			return err
		})
		if err != nil {
			return "", fmt.Errorf("look at %s: %w", path.Join(dir, name), err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// hashFile adds a file. One that cannot be read adds why, for it may count later.
func hashFile(sum io.Writer, root *os.Root, name string, left int64) (int64, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		fmt.Fprintf(sum, "not read: %v\n", err)
		return 0, nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !st.Mode().IsRegular() {
		fmt.Fprintln(sum, "not a file")
		return 0, nil
	}
	fmt.Fprintln(sum, st.Size())
	n, err := io.Copy(sum, io.LimitReader(f, left+1))
	if err == nil && n > left {
		err = fmt.Errorf("there are more than %d bytes", maxBytes)
	}
	return n, err
}
