//go:build linux && cgo

package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// matrixVariable names a copy of the documentation to a test process that cannot
// reach it.
const matrixVariable = "HAYWARD_TEST_MATRIX"

// matrixFile is the documentation that holds the table of what is refused. The
// table is what the test compares the kernel with.
func matrixFile() string {
	if path := os.Getenv(matrixVariable); path != "" {
		return path
	}
	return "../docs/sandbox.md"
}

// The kinds of user in the cells of the table.
const (
	kindRoot    = "root"
	kindForeign = "foreign" // root, in a workspace of somebody else
	kindUser    = "user"
)

// matrixRow is one action and what it gives under each profile.
type matrixRow struct {
	what, action string
	cells        map[string]string // by profile
}

var matrixColumns = []string{Off, Workspace, Devbox, ReadOnly, Strict}

// readMatrix reads the rows of the table between its markers.
func readMatrix(t *testing.T) []matrixRow {
	t.Helper()
	b, err := os.ReadFile(matrixFile())
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(b), "<!-- matrix -->")
	require.True(t, ok)
	body, _, ok := strings.Cut(rest, "<!-- end of matrix -->")
	require.True(t, ok)
	var rows []matrixRow
	for line := range strings.Lines(body) {
		cells := strings.Split(strings.ReplaceAll(strings.Trim(strings.TrimSpace(line), "|"), `\|`, "\x00"), "|")
		if len(cells) != len(matrixColumns)+2 || strings.HasPrefix(cells[0], " ---") || strings.TrimSpace(cells[1]) == "action" {
			continue
		}
		row := matrixRow{
			what:   strings.TrimSpace(cells[0]),
			action: strings.ReplaceAll(strings.Trim(strings.TrimSpace(cells[1]), "`"), "\x00", "|"),
			cells:  make(map[string]string),
		}
		for i, profile := range matrixColumns {
			row.cells[profile] = strings.TrimSpace(cells[i+2])
		}
		rows = append(rows, row)
	}
	require.Greater(t, len(rows), 50)
	return rows
}

// allowed are the results that a cell gives for a kind of user: "EROFS", or
// "EPERM; user: EACCES" with alternatives as "EACCES/EROFS".
func allowed(cell, kind string) []string {
	want := ""
	for part := range strings.SplitSeq(cell, ";") {
		who, result, ok := strings.Cut(strings.TrimSpace(part), ": ")
		if !ok {
			want = who
		} else if who == kind {
			return strings.Split(result, "/")
		}
	}
	return strings.Split(want, "/")
}

// stage is what the actions are tried on.
type stage struct {
	*world
	request Request
	names   *strings.Replacer
}

func newStage(t *testing.T, profile, kind string) *stage {
	t.Helper()
	w := newWorld(t)
	home := w.base + "/home"
	w.cache = w.outside + "/cache" // not in what every profile may write
	for _, d := range []string{
		w.workspace + "/dir", w.workspace + "/.git/hooks", w.workspace + "/secrets", w.workspace + "/above", w.workspace + "/sub/.git/hooks", home + "/.ssh", home + "/.aws", w.cache,
	} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	for _, f := range []string{
		w.workspace + "/file", w.workspace + "/.env", w.workspace + "/dir/.env", w.workspace + "/.git/config", w.workspace + "/.git/HEAD",
		w.workspace + "/sub/.git/config", w.workspace + "/sub/.git/HEAD", w.workspace + "/secrets/key", w.workspace + "/above/.env", w.outside + "/mv",
		home + "/.ssh/id_ed25519", home + "/.aws/credentials",
	} {
		put(t, f, "SECRET")
	}
	require.NoError(t, os.Symlink(".env", w.workspace+"/envlink"))
	require.NoError(t, os.Symlink(w.workspace+"/.env", w.workspace+"/envabsolute"))
	require.NoError(t, os.Link(w.workspace+"/dir/.env", w.workspace+"/envtwin"))
	r := w.under(t, profile)
	r.Home = home
	if profile != Off {
		r.Deny = []string{"**/.env", "secrets"}
	}
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l
	}
	abstract := fmt.Sprintf("@hayward-matrix-%d", os.Getpid())
	listen("unix", abstract)
	listen("unix", w.outside+"/sock")
	listen("unix", "/tmp/"+filepath.Base(w.base)+".sock")
	listen("unix", w.workspace+"/sock")
	listen("unix", w.state+"/bus/bus.sock")
	tcp := listen("tcp4", "127.0.0.1:0")
	sleeper := exec.Command("sleep", "1000")
	sleeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() {
		require.NoError(t, sleeper.Process.Kill())
		_ = sleeper.Wait() // it was killed
	})
	if kind == kindForeign {
		require.NoError(t, filepath.WalkDir(w.workspace, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, ordinaryUID, ordinaryUID)
		}))
	}
	require.NoError(t, os.Chmod(w.workspace, 0o755))
	return &stage{world: w, request: r, names: strings.NewReplacer(
		"{ws}", w.workspace, "{out}", w.outside, "{other}", r.TempRoot+"/other", "{cache}", w.cache,
		"{state}", w.state, "{base}", w.base, "{name}", filepath.Base(w.base), "{home}", home,
		"{pid}", fmt.Sprint(sleeper.Process.Pid), "{tcp}", tcp.Addr().String(), "{abstract}", abstract,
	)}
}

// TestConfinedMatrix tries every action of the table under every profile and
// compares what the kernel says with it. Profile off is the control: what a
// profile refuses must be possible without.
func TestConfinedMatrix(t *testing.T) {
	requireEnforceable(t)
	rows := readMatrix(t)
	kinds := []string{kindUser}
	if os.Geteuid() == 0 {
		kinds = []string{kindRoot, kindForeign}
	}
	for _, kind := range kinds {
		for _, profile := range matrixColumns {
			t.Run(kind+"/"+profile, func(t *testing.T) {
				var wrong []string
				for i, got := range newStage(t, profile, kind).try(t, rows) {
					if want := allowed(rows[i].cells[profile], kind); !slices.Contains(want, got) {
						wrong = append(wrong, fmt.Sprintf("%s [%s]: %s, the table says %s", rows[i].what, rows[i].action, got, strings.Join(want, "/")))
					}
				}
				if len(wrong) > 0 {
					t.Fatal(strings.Join(wrong, "\n"))
				}
			})
		}
	}
}

// try runs each action in a fresh state of mind but on one stage, and returns
// the results in the order of the rows.
func (s *stage) try(t *testing.T, rows []matrixRow) []string {
	t.Helper()
	p := compile(t, s.request, Probe())
	var actions []string
	for _, r := range rows {
		actions = append(actions, s.names.Replace(strings.ReplaceAll(r.action, "{tmp}", p.TempDir)))
	}
	l := launch{}
	if s.request.Profile == Off && os.Geteuid() == 0 {
		// The control run mounts for real, where nobody else sees it.
		l.attr = &syscall.SysProcAttr{Setsid: true, Unshareflags: unix.CLONE_NEWNS}
	}
	o := s.run(t, p, l, actions...)
	report, e := p.Report(o.records)
	require.Nil(t, e, "%v", e)
	require.Equal(t, s.request.Profile != Off, report.Active)
	require.Zero(t, o.state.ExitCode(), o.stderr)
	var out []string
	for _, a := range actions {
		out = append(out, o.results[a])
	}
	return out
}

// TestMatrixControls holds the table itself: what a profile refuses, root can do
// without one, so a refusal is the sandbox's.
func TestMatrixControls(t *testing.T) {
	for _, r := range readMatrix(t) {
		// EFAULT: the kernel took the call and found nothing behind its pointer.
		first := allowed(r.cells[Off], kindRoot)[0]
		require.Contains(t, []string{"ok", "EFAULT"}, first, r.what)
	}
}
