package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// report sums up. Everybody who writes to r has ended.
func (r *run) report() Report {
	took := time.Since(r.began)
	ran, err := r.countRuns()
	if err != nil {
		r.ledger.fault("count the runs: %v", err)
	}
	left := leftOver(ranVariable+"="+r.ran, r.ends)
	counts := r.ledger.Sum(ran)
	rep := Report{
		Scenario: r.scenario, Counts: counts, Left: len(left), LeftProcesses: left,
		CoordinatorKills: r.kills, CancelStorms: r.storms, Faults: r.ledger.faults,
		DurationMS: took.Milliseconds(), PerSecond: float64(counts.Delivered) / took.Seconds(),
		LatencyMS: r.ledger.Latencies(), Samples: r.samples, stages: r.ledger.stages, ends: r.ends,
	}
	if len(r.childPSS) > 0 {
		slices.Sort(r.childPSS)
		rep.ChildPSSKiB = []int64{r.childPSS[len(r.childPSS)/2], r.childPSS[len(r.childPSS)-1]}
	}
	for _, s := range r.samples {
		p := &rep.Peak
		p.Live, p.Queued, p.Files = max(p.Live, s.Live), max(p.Queued, s.Queued), max(p.Files, s.Files)
		p.Threads, p.PSSKiB = max(p.Threads, s.Threads), max(p.PSSKiB, s.PSSKiB)
	}
	return rep
}

// countRuns reads how often each subagent noted that it ran.
func (r *run) countRuns() (map[string]int, error) {
	entries, err := os.ReadDir(r.ran)
	if err != nil {
		return nil, err
	}
	ran := make(map[string]int, len(entries))
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(r.ran, e.Name()))
		if err != nil {
			return ran, err
		}
		ran[e.Name()] = bytes.Count(b, []byte("\n"))
	}
	return ran, nil
}

// WriteEnds writes each end that was delivered, a JSON object on each line, in the
// order of their delivery.
func (r Report) WriteEnds(out io.Writer) error {
	w := bufio.NewWriter(out)
	encoder := json.NewEncoder(w)
	for _, end := range r.ends {
		if err := encoder.Encode(end); err != nil {
			return err
		}
	}
	return w.Flush()
}

// Print writes the report for people.
func (r Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	line("subagents", "%d accepted, %d refused after a cancel", r.Accepted, r.Refused)
	line("ends", "%d completed, %d failed, %d cancelled", r.Completed, r.Failed, r.Cancelled)
	line("delivered", "%d, %d of them again before the acknowledgement", r.Delivered, r.Redelivered)
	line("lost", "%d", r.Lost)
	line("duplicated", "%d", r.Duplicated)
	line("wrong", "%d", r.Wrong)
	line("processes left", "%d", r.Left)
	line("coordinator", "killed %d times; %d cancel storms", r.CoordinatorKills, r.CancelStorms)
	line("took", "%.1f s, %.1f subagents a second", float64(r.DurationMS)/1000, r.PerSecond)
	line("live at once", "%d, %d queued", r.Peak.Live, r.Peak.Queued)
	if len(r.ChildPSSKiB) == 2 {
		line("memory of a supervisor", "%d KiB (median), %d KiB (most)", r.ChildPSSKiB[0], r.ChildPSSKiB[1])
	}
	line("coordinator at most", "%d KiB, %d files, %d threads", r.Peak.PSSKiB, r.Peak.Files, r.Peak.Threads)
	fmt.Fprintln(w, "\nlatency in ms\tcount\tp50\tp90\tp99\tmax")
	for _, stage := range Stages {
		if l, ok := r.LatencyMS[stage]; ok {
			fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\n", stage, l.Count, l.P50, l.P90, l.P99, l.Max)
		}
	}
	for _, p := range r.LeftProcesses {
		fmt.Fprintf(w, "left: %s\n", p)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(w, "fault: %s\n", f)
	}
	return w.Flush()
}
