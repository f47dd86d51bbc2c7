package testkit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const module = "github.com/hayward-dev/hayward"

var (
	child = build{pkg: module + "/cmd/hayward-child", variable: "HAYWARD_TESTKIT_CHILD"}
	bare  = build{pkg: module + "/internal/testkit/bare", variable: "HAYWARD_TESTKIT_BARE"}
	agent = build{pkg: module + "/internal/modelstub/cmd/stubclaude", variable: "HAYWARD_TESTKIT_AGENT"}

	census = build{pkg: module + "/internal/census", variable: "HAYWARD_TESTKIT_CENSUS"}

	program  = build{pkg: module + "/cmd/hayward", variable: "HAYWARD_TESTKIT_PROGRAM", embed: &child}
	crashing = build{
		pkg: module + "/cmd/hayward", variable: "HAYWARD_TESTKIT_CRASHPOINTS", embed: &child,
		tags: ",crashpoints", suffix: "-crashpoints",
	}
)

// Child returns the path of a hayward-child built from this tree, as it is
// released: static, with cgo, without the race detector.
func Child(t testing.TB) string {
	t.Helper()
	return child.path(t)
}

// Program returns the path of a hayward built from this tree, as it is released,
// with the hayward-child of [Child] inside.
func Program(t testing.TB) string {
	t.Helper()
	return program.path(t)
}

// ProgramWithCrashpoints is [Program] with the places of internal/crashpoint
// compiled in, at which its coordinator dies when it is asked to.
func ProgramWithCrashpoints(t testing.TB) string {
	t.Helper()
	return crashing.path(t)
}

// BareChild returns the path of the supervisor without its constructor.
func BareChild(t testing.TB) string {
	t.Helper()
	return bare.path(t)
}

// Census returns the path of the program that counts the processes of a state
// directory from outside.
func Census(t testing.TB) string {
	t.Helper()
	return census.path(t)
}

// Agent returns the path of the agent CLI that stands in for claude.
func Agent(t testing.TB) string {
	t.Helper()
	return agent.path(t)
}

// build makes a binary once in each test process.
type build struct {
	pkg string
	// variable names the binary when another test process has made it.
	variable string
	// embed is the child that goes inside, nil for none.
	embed *build
	// tags are added to those of every build, suffix to the name of the result.
	tags, suffix string

	once sync.Once
	made string
	err  error
}

func (b *build) path(t testing.TB) string {
	t.Helper()
	made, err := b.get()
	if err != nil {
		t.Fatalf("build %s: %v", b.pkg, err)
	}
	return made
}

func (b *build) get() (string, error) {
	b.once.Do(func() { b.made, b.err = b.make() })
	return b.made, b.err
}

// make builds into a directory that all test processes of the user share: go
// build does nothing when the binary is up to date. What is executed is a copy
// named by its content, so nothing executes a file that another is writing.
func (b *build) make() (string, error) {
	if path := os.Getenv(b.variable); path != "" {
		return path, nil
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	arguments := []string{"build", "-tags", "netgo,osusergo" + b.tags, "-ldflags", "-s -w -linkmode external -extldflags -static"}
	if b.embed != nil {
		overlay, err := b.overlay(dir)
		if err != nil {
			return "", err
		}
		arguments = append(arguments, "-overlay", overlay)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	built := filepath.Join(dir, filepath.Base(b.pkg)+b.suffix)
	cmd := exec.Command("go", append(arguments, "-o", built, b.pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	path := filepath.Join(dir, hex.EncodeToString(sum[:]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path+".new", content, 0o755); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

// overlay names a file for go build that puts the child where hayward embeds it,
// whatever a make left there. Its name follows the child's content.
func (b *build) overlay(dir string) (string, error) {
	path, err := b.embed.get()
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", module+"/internal/childbin").Output()
	if err != nil {
		return "", fmt.Errorf("find internal/childbin: %w", err)
	}
	body, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(strings.TrimSpace(string(out)), "bin", "hayward-child"): path,
	}})
	if err != nil {
		return "", err
	}
	overlay := path + ".overlay.json"
	return overlay, os.WriteFile(overlay, body, 0o600)
}

// cacheDir returns a directory of this user that others can reach but not write.
func cacheDir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("hayward-testkit-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(st.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s is not a directory that only we can write", dir)
	}
	return dir, nil
}

// Dir returns an empty directory with a short path that every user can reach,
// which [testing.TB.TempDir] is not. It is removed at the end of the test.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
