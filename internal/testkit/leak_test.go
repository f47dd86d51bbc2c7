package testkit_test

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/proc"
	"github.com/hayward-dev/hayward/internal/testkit"
)

func TestMain(m *testing.M) { testkit.LeakCheck(m) }

const leak = "HAYWARD_TESTKIT_LEAK"

// kept holds what a test leaks, so that no finalizer closes it.
var kept *os.File

// TestLeak leaks what the variable names; by itself it does nothing.
func TestLeak(t *testing.T) {
	switch os.Getenv(leak) {
	case "goroutine":
		go func() { select {} }()
	case "descriptor":
		var err error
		kept, err = os.Open("/etc/passwd")
		require.NoError(t, err)
	case "process":
		// Twice orphaned, in a session of its own; it ends by itself. It says when it
		// is there, for the shell does not wait for it.
		cmd := exec.Command("sh", "-c", "(setsid sh -c 'echo up; exec sleep 20 >/dev/null 2>&1' &) &")
		said, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line, err := bufio.NewReader(said).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "up\n", line)
		require.NoError(t, cmd.Wait())
	}
}

// The checks find each kind of leak, and nothing where there is none.
func TestLeaksAreFound(t *testing.T) {
	for kind, says := range map[string]string{
		"":           "PASS",
		"goroutine":  "found unexpected goroutines",
		"descriptor": "descriptors left open",
		"process":    "processes left",
	} {
		t.Run("leak "+kind, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run", "^TestLeak$")
			cmd.Env = append(os.Environ(), leak+"="+kind)
			out, err := cmd.CombinedOutput()
			require.Contains(t, string(out), says)
			if kind == "" {
				require.NoError(t, err)
			} else {
				require.Error(t, err, "%s", out)
			}
			if kind == "process" {
				// It is left to this process now, which ends it.
				endDescendants(t)
			}
		})
	}
}

func endDescendants(t *testing.T) {
	t.Helper()
	living, err := proc.Descendants(os.Getpid())
	require.NoError(t, err)
	require.NotEmpty(t, living)
	for _, p := range living {
		require.NoError(t, p.Signal(unix.SIGKILL))
	}
}
