// Command skipcheck runs "go test" with its arguments and refuses a test run
// that skipped what this machine can do.
//
// A skip must say why in the words of one of the causes of this package, such
// as "needs root" or "needs Landlock ABI 7", and the machine must really lack
// it. Everything else is as with go test: its lines for each package, the output
// of the tests that failed, and its exit code; the last line counts the tests,
// subtests included.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, os.Args[1:], os.Stdout, causes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "skipcheck:", err)
	}
	os.Exit(code)
}

// run returns the exit code: that of go test, or 1 for skips without a cause.
func run(ctx context.Context, args []string, out io.Writer, known []cause) (int, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start go test: %w", err)
	}
	t := newTally(out, known)
	if err := t.read(bufio.NewReader(pipe)); err != nil {
		return 1, errors.Join(fmt.Errorf("read the output of go test: %w", err), cmd.Cancel(), cmd.Wait())
	}
	waited := cmd.Wait()
	good := t.close()
	var exit *exec.ExitError
	switch {
	case errors.As(waited, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), nil
	case waited != nil:
		return 1, fmt.Errorf("go test: %w", waited)
	case !good:
		return 1, nil
	}
	return 0, nil
}
