package main

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakes is a machine that lacks a moon and has a sun.
var fakes = []cause{
	{regexp.MustCompile(`needs a moon`), func([]string) bool { return true }},
	{regexp.MustCompile(`needs a sun`), func([]string) bool { return false }},
}

func TestJudge(t *testing.T) {
	require.Empty(t, judge(fakes, "x_test.go:3: needs a moon: it is dark"))
	require.Contains(t, judge(fakes, "x_test.go:3: needs a sun"), "has what it asks for")
	require.Contains(t, judge(fakes, "x_test.go:3: flaky"), "no known cause")
	require.Contains(t, judge(fakes, ""), "no reason")
}

// TestCauses: each cause is decided by the machine, not by the wish.
func TestCauses(t *testing.T) {
	root, user := judge(causes, "needs root"), judge(causes, "needs an ordinary user")
	require.NotEqual(t, root == "", user == "", "exactly one of them is lacking")
	require.Empty(t, judge(causes, "needs kernel 999.0"))
	require.NotEmpty(t, judge(causes, "needs kernel 2.6"))
	require.Empty(t, judge(causes, "needs kernel 99999999999999999999.0"))
	require.Empty(t, judge(causes, "needs Landlock ABI 9999"))
	require.Empty(t, judge(causes, "needs the program no-such-program"))
	require.NotEmpty(t, judge(causes, "needs the program go"))
	require.NotEmpty(t, judge(causes, "needs Linux"), "these tests run on Linux")
}

func runTally(t *testing.T, lines ...string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	tally := newTally(&out, fakes)
	require.NoError(t, tally.read(bufio.NewReader(strings.NewReader(strings.Join(lines, "\n")))))
	good := tally.close()
	return out.String(), good
}

func TestTallyCounts(t *testing.T) {
	out, good := runTally(t,
		`{"Action":"start","Package":"p"}`,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: chatter\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: needs a moon\n"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Output":"PASS\n"}`,
		`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
		`{"Action":"pass","Package":"p"}`,
		`{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}`,
		`{"Action":"skip","Package":"q"}`,
	)
	require.True(t, good)
	require.Equal(t, "ok  \tp\t0.1s\n?   \tq\t[no test files]\n1 passed, 0 failed, 1 skipped\n", out)
}

func TestTallyRefusesSkips(t *testing.T) {
	out, good := runTally(t,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: needs a sun\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestC"}`,
	)
	require.False(t, good)
	require.Contains(t, out, "skipped without a cause: p TestB: this machine has what it asks for")
	require.Contains(t, out, "skipped without a cause: p TestC: it gives no reason")
	require.True(t, strings.HasSuffix(out, "\n1 passed, 0 failed, 2 skipped\n"))
}

func TestTallyShowsFailures(t *testing.T) {
	out, _ := runTally(t,
		`{"ImportPath":"broken [broken.test]","Action":"build-output","Output":"broken/x.go:1: syntax error\n"}`,
		`{"ImportPath":"broken [broken.test]","Action":"build-fail"}`,
		`{"Action":"output","Package":"broken","Output":"FAIL\tbroken [build failed]\n"}`,
		`{"Action":"fail","Package":"broken"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: no good\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestHangs","Output":"=== RUN   TestHangs\n"}`,
		`{"Action":"output","Package":"p","Test":"TestHangs","Output":"panic: test timed out\n"}`,
		`{"Action":"fail","Package":"p"}`,
		`not JSON at all`,
	)
	for _, part := range []string{"syntax error", "[build failed]", "no good", "--- FAIL: TestA", "panic: test timed out", "not JSON at all"} {
		require.Contains(t, out, part)
	}
	require.NotContains(t, out, "=== RUN")
	require.True(t, strings.HasSuffix(out, "0 passed, 2 failed, 0 skipped\n"), out)
}

func TestTallyWithoutTests(t *testing.T) {
	_, good := runTally(t, `{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}`)
	require.False(t, good, "a run in which nothing ran proves nothing")
}

// TestRun runs the real go test over a module of three tests.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module three\n\ngo 1.26\n"), 0o600))
	write := func(last string) {
		body := "package three\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Skip(\"needs a moon\") }\nfunc TestC(t *testing.T) { " + last + " }\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "three_test.go"), []byte(body), 0o600))
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	for _, tc := range []struct {
		last, says string
		code       int
	}{
		{"", "2 passed, 0 failed, 1 skipped\n", 0},
		{`t.Skip("needs a sun")`, "1 passed, 0 failed, 2 skipped\n", 1},
		{`t.Error("no good")`, "1 passed, 1 failed, 1 skipped\n", 1},
		{`nonsense`, "0 passed, 1 failed, 0 skipped\n", 1},
	} {
		write(tc.last)
		var out bytes.Buffer
		code, err := run(t.Context(), []string{"./..."}, &out, fakes)
		require.NoError(t, err)
		require.Equal(t, tc.code, code, out.String())
		require.True(t, strings.HasSuffix(out.String(), tc.says), out.String())
	}
}
