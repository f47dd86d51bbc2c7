// Package childbin holds the hayward-child binary and unpacks it, so that there
// is one file to install.
//
// The binary is embedded from the directory bin, where the build puts it. A
// program that was built without it looks for one at the path in HAYWARD_CHILD
// and then beside its own executable.
package childbin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

//go:embed bin
var embedded embed.FS

// Name is the file name of the supervisor.
const Name = "hayward-child"

// Variable names the environment variable that is asked when nothing is
// embedded.
const Variable = "HAYWARD_CHILD"

// ErrMissing says that there is no supervisor to be found.
var ErrMissing = errors.New("hayward-child is neither embedded nor beside the executable: run make build, or set " + Variable)

// Install returns the absolute path of a hayward-child that can be executed. The
// embedded one is written to binDir under the name of its SHA-256, once: a file
// that is there already is used if its content is right and replaced if not.
func Install(binDir string) (string, error) {
	content, err := embedded.ReadFile("bin/" + Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return find(os.Getenv, os.Executable)
	case err != nil:
		return "", fmt.Errorf("read the embedded %s: %w", Name, err)
	}
	return unpack(binDir, content)
}

// find looks for a binary that was not embedded.
func find(getenv func(string) string, executable func() (string, error)) (string, error) {
	if path := getenv(Variable); path != "" {
		if err := check(path); err != nil {
			return "", fmt.Errorf("%s: %w", Variable, err)
		}
		return filepath.Abs(path)
	}
	self, err := executable()
	if err != nil {
		return "", errors.Join(ErrMissing, err)
	}
	path := filepath.Join(filepath.Dir(self), Name)
	if err := check(path); err != nil {
		return "", errors.Join(ErrMissing, err)
	}
	return path, nil
}

// check accepts a regular file that somebody may execute.
func check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// unpack writes content below dir.
func unpack(dir string, content []byte) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", Name, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("unpack %s: %w", Name, err)
	}
	sum := sha256.Sum256(content)
	path := filepath.Join(dir, hex.EncodeToString(sum[:]))
	if intact(path, sum) {
		return path, nil
	}
	if err := write(dir, path, content); err != nil {
		return "", fmt.Errorf("unpack %s: %w", Name, err)
	}
	if !intact(path, sum) {
		return "", fmt.Errorf("unpack %s: %s does not read back as it was written", Name, path)
	}
	return path, nil
}

// mode is that of the unpacked file: nobody writes it again.
const mode = 0o555

// intact reports whether path is a file of ours with that content. A symbolic
// link is not.
func intact(path string, sum [sha256.Size]byte) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != mode {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return false
	}
	return [sha256.Size]byte(h.Sum(nil)) == sum
}

// write makes path appear at once and durably. Others may do the same at the
// same time: the content is the same.
func write(dir, path string, content []byte) error {
	// A process forked while the file is open for writing would hold it open until
	// its exec, and executing the file would fail with ETXTBSY meanwhile.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.CreateTemp(dir, "."+Name+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
