package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const asProgram = "HAYWARD_TEST_STDIO"

// TestMain is also a program that tells, by its exit code, which of its
// descriptors were closed.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		code := 0
		for fd := range 3 {
			if Closed(fd) {
				code |= 1 << fd
			}
		}
		if _, err := fmt.Fprintln(Writer(os.Stdout)); (err != nil) != Closed(1) {
			code = 99
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

func TestClosed(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for redirections, want := range map[string]int{
		"</dev/null >/dev/null 2>/dev/null":     0,
		"<>/dev/null 1<>/dev/null 2<>/dev/null": 0, // as the runtime puts it there
		"<&-":                                   1,
		">&-":                                   2,
		"2>&-":                                  4,
		"<&- >&- 2>&-":                          7,
	} {
		cmd := exec.Command("/bin/sh", "-c", `exec "$0" `+redirections, exe)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		_ = cmd.Run() // the code says it
		require.Equal(t, want, cmd.ProcessState.ExitCode(), redirections)
	}
	require.False(t, Closed(-1))
	require.False(t, Closed(3))
}
