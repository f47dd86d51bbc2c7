// Command bench measures Hayward against floors that are taken in the same run.
//
// Each figure is a ratio: what is measured and its floor are taken in turn, one
// after the other, and the median of the ratios is printed with the interval that
// holds it with 95 % confidence. Times of this machine are printed beside it and
// compared with nothing: two cores of a shared machine drift by a factor of two
// between hours.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// Result is a run of the benchmark.
type Result struct {
	At      time.Time `json:"at"`
	Machine Machine   `json:"machine"`
	Ratios  []Ratio   `json:"ratios"`
}

// Machine describes where it was measured.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

func main() {
	program := flag.String("program", "bin/hayward", "the hayward to measure")
	count := flag.Int("pairs", 300, "pairs of each figure")
	out := flag.String("json", "", "write the result to this file as well")
	baseline := flag.String("baseline", "", "compare with the result in this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *program, *count, *out, *baseline); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program string, count int, out, baseline string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if count < 1 {
		return errors.New("-pairs must be at least 1")
	}
	r := Result{At: time.Now().UTC().Truncate(time.Second), Machine: machine()}
	if r.Ratios, err = measureAll(ctx, program, count); err != nil {
		return err
	}
	var old *Result
	if baseline != "" {
		if old, err = load(baseline); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(os.Stderr, "bench: there is no baseline", baseline)
		} else if err != nil {
			return err
		}
	}
	if err := r.print(os.Stdout, old); err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(b, '\n'), 0o644)
}

// plan is one ratio to be measured.
type plan struct {
	name, floor   string
	bound         float64
	figure, under measure
}

func measureAll(ctx context.Context, program string, count int) ([]Ratio, error) {
	var all []Ratio
	for _, flags := range [][]string{nil, {"--sync-always"}} {
		b, err := open(ctx, program, flags...)
		if err != nil {
			return nil, err
		}
		plans, err := b.plans(len(flags) > 0)
		if err == nil {
			for _, p := range plans {
				var r Ratio
				if r, err = p.take(count); err != nil {
					break
				}
				all = append(all, r)
			}
		}
		if err := errors.Join(err, b.close()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// plans lists the ratios of one coordinator.
func (b *bench) plans(syncAlways bool) ([]plan, error) {
	const floor = "start and wait of an empty Go program"
	if syncAlways {
		return []plan{{"spawn /bin/true to its end, sync always", floor, 6.5, b.spawn("workspace"), b.start}}, nil
	}
	id, err := b.anEnd()
	if err != nil {
		return nil, err
	}
	return []plan{
		{"spawn /bin/true to its end", floor, 5.0, b.spawn("workspace"), b.start},
		{"spawn with profile workspace", "spawn with profile off", 1.6, b.spawn("workspace"), b.spawn("off")},
		{"spawn with profile strict", "spawn with profile off", 0, b.spawn("strict"), b.spawn("off")},
		{"query of one id", "a request that the service framework answers", 2.0, b.query(id), b.ping},
	}, nil
}

// warmUp is how many pairs are taken and thrown away.
const warmUp = 10

func (p plan) take(count int) (Ratio, error) {
	if _, _, err := pairs(warmUp, p.figure, p.under); err != nil {
		return Ratio{}, fmt.Errorf("%s: %w", p.name, err)
	}
	figures, floors, err := pairs(count, p.figure, p.under)
	if err != nil {
		return Ratio{}, fmt.Errorf("%s: %w", p.name, err)
	}
	r := ratio(figures, floors)
	r.Name, r.Floor, r.Bound = p.name, p.floor, p.bound
	return r, nil
}

// print writes a table, beside old if there is one.
func (r Result) print(out io.Writer, old *Result) error {
	fmt.Fprintf(out, "%s, %d cores, Linux %s, %s, %s\n\n", r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, r.Machine.Go, r.At.Format(time.DateOnly))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tover\tratio\t95 %\tbound\tfigure ms\tfloor ms\tbaseline")
	for _, x := range r.Ratios {
		bound := "none"
		if x.Bound > 0 {
			bound = fmt.Sprintf("%.1f %s", x.Bound, map[bool]string{true: "held", false: "NOT HELD"}[x.Held()])
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f to %.2f\t%s\t%.2f\t%.2f\t%s\n", x.Name, x.Floor, x.Median, x.Low, x.High, bound, x.FigureMS, x.FloorMS, old.of(x.Name))
	}
	return w.Flush()
}

// of is what a baseline says of a figure.
func (r *Result) of(name string) string {
	if r != nil {
		for _, x := range r.Ratios {
			if x.Name == name {
				return fmt.Sprintf("%.2f (%s)", x.Median, r.At.Format(time.DateOnly))
			}
		}
	}
	return "-"
}

func load(path string) (*Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r Result
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}

func machine() Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}
