package outputschema

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain is the validator as well.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Verb {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestRun(t *testing.T) {
	const schema = `{"type":"object","required":["a"]}`
	value, err := Run(t.Context(), "/proc/self/exe", []byte(schema), []byte(` {"a": 1} `))
	require.NoError(t, err)
	require.Equal(t, `{"a":1}`, string(value))

	var mismatch *MismatchError
	for _, bad := range []string{`{"b": 1}`, "prose", "", "\xff"} {
		_, err = Run(t.Context(), "/proc/self/exe", []byte(schema), []byte(bad))
		require.ErrorAs(t, err, &mismatch, bad)
	}
	_, err = Run(t.Context(), "/proc/self/exe", []byte(`{"type": 7}`), []byte(`1`))
	require.ErrorContains(t, err, "no JSON Schema")
	require.NotErrorAs(t, err, &mismatch)
	_, err = Run(t.Context(), "/bin/false", []byte(schema), []byte(`1`))
	require.ErrorContains(t, err, "the validator ended")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, "/proc/self/exe", []byte(schema), []byte(`1`))
	require.ErrorIs(t, err, context.Canceled)
}

// What takes for ever takes a bounded time, in a process that is not ours.
func TestRunIsBounded(t *testing.T) {
	const depth = 60 // twice as long with each
	schema := `{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`
	result := strings.Repeat(`{"a":`, depth) + `1` + strings.Repeat(`}`, depth)
	ctx, cancel := context.WithTimeout(t.Context(), maxCPU/20)
	defer cancel()
	_, err := Run(ctx, "/proc/self/exe", []byte(schema), []byte(result))
	require.ErrorContains(t, err, "the validator ended")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
