package childbin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/testkit"
)

func TestMain(m *testing.M) { testkit.LeakCheck(m) }

var script = []byte("#!/bin/sh\necho child\n")

func TestUnpack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "bin")
	path, err := unpack(dir, script)
	require.NoError(t, err)
	sum := sha256.Sum256(script)
	require.Equal(t, filepath.Join(dir, hex.EncodeToString(sum[:])), path)
	out, err := exec.Command(path).Output()
	require.NoError(t, err)
	require.Equal(t, "child\n", string(out))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o555), info.Mode())

	again, err := unpack(dir, script)
	require.NoError(t, err)
	require.Equal(t, path, again)
	same, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(info, same), "an intact file is not written again")
}

// A file that is not what its name says is replaced.
func TestUnpackReplaces(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"changed": func(t *testing.T, path string) {
			require.NoError(t, os.Chmod(path, 0o755))
			require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho evil\n"), 0o755))
			require.NoError(t, os.Chmod(path, 0o555))
		},
		"cut short": func(t *testing.T, path string) {
			require.NoError(t, os.Chmod(path, 0o755))
			require.NoError(t, os.Truncate(path, 5))
			require.NoError(t, os.Chmod(path, 0o555))
		},
		"writable": func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o777)) },
		"a link": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".real"))
			require.NoError(t, os.Symlink(path+".real", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, err := unpack(dir, script)
			require.NoError(t, err)
			spoil(t, path)
			again, err := unpack(dir, script)
			require.NoError(t, err)
			require.Equal(t, path, again)
			require.True(t, intact(path, sha256.Sum256(script)))
		})
	}
}

// Starting what was just unpacked works while others unpack and start too.
func TestUnpackTogether(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			path, err := unpack(dir, script)
			if err == nil {
				err = exec.Command(path).Run()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary files are left")
}

func TestUnpackFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := unpack(filepath.Join(file, "bin"), script)
	require.ErrorContains(t, err, "unpack hayward-child")
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	beside := filepath.Join(dir, Name)
	executable := func() (string, error) { return filepath.Join(dir, "hayward"), nil }
	env := func(value string) func(string) string {
		return func(name string) string {
			require.Equal(t, Variable, name)
			return value
		}
	}
	_, err := find(env(""), executable)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "make build")

	require.NoError(t, os.WriteFile(beside, script, 0o644))
	_, err = find(env(""), executable)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "not an executable file")

	require.NoError(t, os.Chmod(beside, 0o755))
	path, err := find(env(""), executable)
	require.NoError(t, err)
	require.Equal(t, beside, path)

	other := filepath.Join(t.TempDir(), "other")
	_, err = find(env(other), executable)
	require.ErrorContains(t, err, Variable)
	require.NoError(t, os.WriteFile(other, script, 0o755))
	path, err = find(env(other), executable)
	require.NoError(t, err)
	require.Equal(t, other, path, "the variable comes first")
}

// Install works in a build with and in one without the embedded binary.
func TestInstall(t *testing.T) {
	t.Setenv(Variable, "/bin/sh")
	path, err := Install(t.TempDir())
	require.NoError(t, err)
	if _, err := embedded.Open("bin/" + Name); err != nil {
		require.Equal(t, "/bin/sh", path)
		return
	}
	require.NotEqual(t, "/bin/sh", path)
	require.NoError(t, check(path))
}
