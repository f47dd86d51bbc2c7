package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// goBench is what a case takes from the Go benchmarks of a package.
type goBench struct {
	pkg, bench string
	// args are further arguments of go test.
	args []string
	// takes are the metrics that become figures, in this order.
	takes []metric
}

// metric is one metric of a Go benchmark.
type metric struct {
	benchmark, unit string
	what            string
	bound           float64
}

func sandboxCase(s *setting) ([]Figure, error) {
	const ms, us = "added-ms", "added-us"
	return s.goBenches(
		goBench{
			pkg: "./sandbox", bench: "^BenchmarkConfine$", args: []string{"-benchtime", "100x", "-count", "3"},
			takes: []metric{
				{"Confine/workspace/denied=0", ms, "start under workspace, more than under off", 2.0},
				{"Confine/strict/denied=0", ms, "start under strict, more than under off", 3.5},
				{"Confine/workspace/denied=100", ms, "start with 100 denied files, more than under off", 4},
				{"Confine/workspace/denied=1000", ms, "start with 1 000 denied files, more than under off", 25},
			},
		},
		goBench{
			pkg: "./sandbox", bench: "^BenchmarkOpen$", args: []string{"-benchtime", "20x", "-count", "3"},
			takes: []metric{
				{"Open/workspace", us, "open inside workspace, more than under off", 3},
				{"Open/strict", us, "open inside strict, more than under off", 3},
			},
		},
	)
}

func worktreeCase(s *setting) ([]Figure, error) {
	return s.goBenches(goBench{
		pkg: "./worktree", bench: "^Benchmark(Create|Snapshot)$", args: []string{"-benchtime", "1x", "-count", "3"},
		takes: []metric{
			{"Create", unitRatio, "make a worktree, over git worktree add", 0},
			{"Snapshot", unitRatio, "snapshot a worktree, over git add -A and git write-tree", 0},
		},
	})
}

func (s *setting) goBenches(all ...goBench) ([]Figure, error) {
	var figures []Figure
	for _, g := range all {
		taken, err := s.goBench(g)
		if err != nil {
			return nil, err
		}
		figures = append(figures, taken...)
	}
	return figures, nil
}

// benchLine is a line of go test -bench: name, iterations, values with units.
var benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// goBench runs benchmarks of a package and takes figures from what they report. A
// benchmark that is not there is a missing figure.
func (s *setting) goBench(g goBench) ([]Figure, error) {
	samples := make(map[metric][]float64)
	if _, err := os.Stat(strings.TrimPrefix(g.pkg, "./")); err == nil {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(s.ctx, "go", append([]string{"test", g.pkg, "-run", "^$", "-bench", g.bench}, g.args...)...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go test -bench of %s: %w: %s%s", g.pkg, err, out, stderr.Bytes())
		}
		samples = parseBench(string(out))
	}
	var all []Figure
	for _, m := range g.takes {
		f := Figure{What: m.what, Unit: strings.TrimPrefix(m.unit, "added-"), Bound: m.bound, Missing: "not measured by " + g.pkg}
		if values := samples[metric{benchmark: m.benchmark, unit: m.unit}]; len(values) > 0 {
			taken := amount(f.Unit, values)
			taken.What, taken.Bound = f.What, f.Bound
			f = taken
		}
		all = append(all, f)
	}
	return all, nil
}

// parseBench returns the values of each benchmark and unit.
func parseBench(out string) map[metric][]float64 {
	samples := make(map[metric][]float64)
	for line := range strings.Lines(out) {
		match := benchLine.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			continue
		}
		for pair := range slices.Chunk(strings.Fields(match[2]), 2) {
			if len(pair) < 2 {
				break
			}
			if value, err := strconv.ParseFloat(pair[0], 64); err == nil {
				key := metric{benchmark: match[1], unit: pair[1]}
				samples[key] = append(samples[key], value)
			}
		}
	}
	return samples
}
