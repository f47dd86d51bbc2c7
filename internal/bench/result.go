package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
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
	Figures []Figure  `json:"figures"`
}

// Machine describes where it was measured.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	// Load is the machine's load average when it was begun: what else it did.
	Load string `json:"load"`
}

func machine() Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), Load: "unknown"}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(b), " ")
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

// print writes a table, beside old if there is one.
func (r Result) print(out io.Writer, old *Result) error {
	fmt.Fprintln(out, r.where())
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "case\tfigure\tover\tmedian\t95 %\tn\tbound\tfigure ms\tfloor ms\tbaseline")
	for _, f := range r.Figures {
		if f.Missing != "" {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\t\t\t\t\t%s\n", f.Case, f.What, f.Floor, f.Missing, old.of(f))
			continue
		}
		unit, times := "", "\t"
		if f.Unit != unitRatio {
			unit = " " + f.Unit
		}
		if f.FloorMS != 0 {
			times = fmt.Sprintf("%.2f\t%.2f", f.FigureMS, f.FloorMS)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\t%s to %s\t%d\t%s\t%s\t%s\n",
			f.Case, f.What, f.Floor, number(f.Median), unit, number(f.Low), number(f.High), f.Samples, f.bound(), times, old.of(f))
	}
	return w.Flush()
}

// where says when and where it was measured.
func (r Result) where() string {
	m := r.Machine
	return fmt.Sprintf("%s, %d cores, Linux %s, %s, load %s, %s", m.CPU, m.Cores, m.Kernel, m.Go, m.Load, r.At.Format(time.DateOnly))
}

// markdown is the table as documents have it.
func (r Result) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| case | figure | over | median | 95 %% | n | bound |\n|---|---|---|---|---|---|---|\n", r.where())
	for _, f := range r.Figures {
		if f.Missing != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | | | |\n", f.Case, f.What, f.Floor, f.Missing)
			continue
		}
		unit, bound := "", ""
		if f.Unit != unitRatio {
			unit = " " + f.Unit
		}
		if f.Bound > 0 {
			bound = number(f.Bound)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s%s | %s to %s | %d | %s |\n",
			f.Case, f.What, f.Floor, number(f.Median), unit, number(f.Low), number(f.High), f.Samples, bound)
	}
	return b.String()
}

// bound says what the bound is, and whether it is held.
func (f Figure) bound() string {
	switch {
	case f.Bound == 0:
		return "-"
	case f.Held():
		return fmt.Sprintf("<= %s held", number(f.Bound))
	case f.Broken():
		return fmt.Sprintf("<= %s NOT HELD", number(f.Bound))
	}
	return fmt.Sprintf("<= %s in doubt", number(f.Bound))
}

// number prints small numbers with two digits behind the point, large ones without.
func number(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// of is what a baseline says of a figure.
func (r *Result) of(f Figure) string {
	if r != nil {
		for _, x := range r.Figures {
			if x.Case == f.Case && x.What == f.What && x.Missing == "" {
				return fmt.Sprintf("%s (%s)", number(x.Median), r.At.Format(time.DateOnly))
			}
		}
	}
	return "-"
}

// verdict names the figures that are over their bounds beyond doubt.
func (r Result) verdict() error {
	var over []string
	for _, f := range r.Figures {
		if f.Broken() {
			over = append(over, fmt.Sprintf("%s: %s: %s, bound %s", f.Case, f.What, number(f.Median), number(f.Bound)))
		}
	}
	if len(over) == 0 {
		return nil
	}
	return fmt.Errorf("over their bounds:\n  %s", strings.Join(over, "\n  "))
}

func (r Result) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
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
