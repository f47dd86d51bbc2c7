package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of go test -json, see "go doc test2json".
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// key names one test of one package.
type key struct{ pkg, test string }

// tally prints what go test would print and counts.
type tally struct {
	out   io.Writer
	known []cause

	passed, failed, skipped int
	// output holds what the tests that have not ended wrote.
	output map[key][]string
	// failures counts the failed tests of each package.
	failures map[string]int
	// refused describes the skips that have no cause.
	refused []string
}

func newTally(out io.Writer, known []cause) *tally {
	return &tally{out: out, known: known, output: map[key][]string{}, failures: map[string]int{}}
}

// read consumes events until the end of r.
func (t *tally) read(r *bufio.Reader) error {
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprintf(t.out, "%s", line)
			} else {
				t.take(e)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (t *tally) take(e event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "output":
		switch {
		case e.Test != "":
			t.output[k] = append(t.output[k], e.Output)
		case e.Output != "PASS\n":
			fmt.Fprint(t.out, e.Output)
		}
	case "pass":
		if e.Test != "" {
			t.passed++
			delete(t.output, k)
		}
	case "skip":
		if e.Test != "" {
			t.skipped++
			t.checkSkip(k)
			delete(t.output, k)
		}
	case "fail":
		if e.Test != "" {
			t.failed++
			t.failures[e.Package]++
			t.show(k)
			return
		}
		t.failPackage(e.Package)
	}
}

// failPackage handles the end of a package that failed: by its tests, or by
// itself, when it was not built, panicked or ran out of time.
func (t *tally) failPackage(pkg string) {
	unfinished := slices.SortedFunc(maps.Keys(t.output), func(a, b key) int { return strings.Compare(a.test, b.test) })
	for _, k := range unfinished {
		if k.pkg == pkg {
			t.show(k)
		}
	}
	if t.failures[pkg] == 0 {
		t.failed++
	}
}

// show prints the output of one test without the marks of its progress.
func (t *tally) show(k key) {
	for _, line := range t.output[k] {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(t.out, line)
		}
	}
	delete(t.output, k)
}

func (t *tally) checkSkip(k key) {
	var reason strings.Builder
	for _, line := range t.output[k] {
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(strings.TrimSpace(line), "--- SKIP") {
			reason.WriteString(strings.TrimSpace(line) + " ")
		}
	}
	if why := judge(t.known, strings.TrimSpace(reason.String())); why != "" {
		t.refused = append(t.refused, fmt.Sprintf("%s %s: %s", k.pkg, k.test, why))
	}
}

// close prints the verdict and reports whether every skip has a cause and any
// test ran.
func (t *tally) close() bool {
	for _, r := range t.refused {
		fmt.Fprintf(t.out, "skipped without a cause: %s\n", r)
	}
	fmt.Fprintf(t.out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	return len(t.refused) == 0 && t.passed+t.skipped > 0
}
