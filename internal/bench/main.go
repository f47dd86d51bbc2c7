// Command bench measures Hayward against floors that are taken in the same run.
//
// Each ratio is of pairs: what is measured and its floor are taken in turn, and the
// median of the ratios is printed with the interval that holds it with 95 %
// confidence. Times of this machine are printed beside it and compared with
// nothing: two cores of a shared machine drift by a factor of two between hours.
// Amounts of memory, and what the sandbox adds, are printed as they are.
//
// It fails if a figure is over its bound with its whole interval.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	var o options
	flag.StringVar(&o.program, "program", "bin/hayward", "the hayward to measure")
	flag.IntVar(&o.pairs, "pairs", 300, "pairs of the figures that are quick to take")
	flag.IntVar(&o.finished, "finished", 100_000, "finished records of the crowded coordinator")
	flag.IntVar(&o.live, "live", 1000, "live subagents of the crowded coordinator")
	flag.StringVar(&o.out, "json", "", "write the result to this file as well")
	flag.StringVar(&o.markdown, "markdown", "", "write the table in Markdown to this file")
	flag.StringVar(&o.baseline, "baseline", "", "compare with the result in this file")
	only := flag.String("only", "", "take these `cases` alone, separated by commas")
	list := flag.Bool("list", false, "list the cases")
	replayed := flag.String("replay", "", "open the store of this state directory, read every record, and leave")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if err := run(ctx, o, *only, *list, *replayed); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	program, out, baseline, markdown string
	pairs, finished, live            int
}

func run(ctx context.Context, o options, only string, list bool, replayed string) (err error) {
	switch {
	case replayed != "":
		_, err := replay(ctx, replayed)
		return err
	case list:
		for _, c := range cases {
			fmt.Printf("%-16s %s\n", c.name, c.about)
		}
		return nil
	}
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if o.pairs < 1 || o.finished < fewFinished || o.live < fewLive {
		return fmt.Errorf("-pairs must be at least 1, -finished and -live at least %d", fewLive)
	}
	if o.program, err = filepath.Abs(o.program); err != nil {
		return err
	}
	var old *Result
	if o.baseline != "" {
		if old, err = load(o.baseline); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(os.Stderr, "bench: there is no baseline", o.baseline)
		} else if err != nil {
			return err
		}
	}
	r := Result{At: time.Now().UTC().Truncate(time.Second), Machine: machine()}
	// What was taken before an error is told all the same.
	r.Figures, err = takeAll(ctx, o, chosen)
	if err := errors.Join(err, r.tell(o, old)); err != nil {
		return err
	}
	return r.verdict()
}

// tell prints the result and writes it where the options say.
func (r Result) tell(o options, old *Result) error {
	if err := r.print(os.Stdout, old); err != nil {
		return err
	}
	if o.out != "" {
		if err := r.write(o.out); err != nil {
			return err
		}
	}
	if o.markdown == "" {
		return nil
	}
	return os.WriteFile(o.markdown, []byte(r.markdown()), 0o644)
}

// choose returns the cases with these names, all of them for none.
func choose(only string) ([]benchCase, error) {
	if only == "" {
		return cases, nil
	}
	names := strings.Split(only, ",")
	for _, name := range names {
		if !slices.ContainsFunc(cases, func(c benchCase) bool { return c.name == name }) {
			return nil, fmt.Errorf("there is no case %q; -list names them", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(cases), func(c benchCase) bool { return !slices.Contains(names, c.name) }), nil
}

func takeAll(ctx context.Context, o options, chosen []benchCase) (all []Figure, err error) {
	s, err := newSetting(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, c := range chosen {
		began := time.Now()
		fmt.Fprintf(os.Stderr, "bench: %s: %s\n", c.name, c.about)
		figures, err := c.take(s)
		if err != nil {
			return all, fmt.Errorf("%s: %w", c.name, err)
		}
		for i := range figures {
			figures[i].Case = c.name
		}
		all = append(all, figures...)
		fmt.Fprintf(os.Stderr, "bench: %s took %v\n", c.name, time.Since(began).Round(time.Second))
	}
	return all, nil
}
