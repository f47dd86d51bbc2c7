package plan

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Table writes one line for each subagent: name, status, duration, exit code
// and the path of its output.
func (s Summary) Table(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tSTATUS\tDURATION\tEXIT\tOUTPUT")
	for _, res := range s.Subagents {
		duration, exit, path := "-", "-", "-"
		if res.StartedAt != nil {
			duration = clock(time.Duration(res.DurationMS) * time.Millisecond)
		}
		if res.ExitCode != nil {
			exit = strconv.Itoa(*res.ExitCode)
		} else if res.Signal != "" {
			exit = res.Signal
		}
		if res.OutputPath != "" {
			path = res.OutputPath
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", res.Name, outcomeText(res.Status, string(res.Reason)), duration, exit, path)
	}
	// The writes above go into the tabwriter, which keeps their error.
	return tw.Flush()
}

// Line sums the run up in one line.
func (s Summary) Line() string {
	parts := make([]string, 0, 4)
	for _, p := range []struct {
		n    int
		word string
	}{
		{s.Counts.Completed, "completed"}, {s.Counts.Failed, "failed"},
		{s.Counts.Cancelled, "cancelled"}, {s.Counts.Skipped, "skipped"},
		{s.Counts.Running, "running"}, {s.Counts.Waiting, "waiting"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	return fmt.Sprintf("run %s of %s: %s in %s", s.RunID, s.Plan, strings.Join(parts, ", "),
		clock(time.Duration(s.DurationMS)*time.Millisecond))
}

// shown returns the result whose output the plan asks to see, if it ran.
func (p *Plan) shown(s Summary) (Result, bool) {
	for i, sub := range p.Subagents {
		if sub.Show && s.Subagents[i].StartedAt != nil {
			return s.Subagents[i], true
		}
	}
	return Result{}, false
}

// copyOutput writes the whole stdout of an ended subagent. Parts are asked for
// again by offset when a reply is lost.
func copyOutput(ctx context.Context, runner Runner, session, id string, w io.Writer) error {
	return copyLog(ctx, runner, events.FileRequest{ParentSessionID: session, ID: id, Stream: "stdout"}, w)
}

// copyLog writes what request asks for, up to what is the end now.
func copyLog(ctx context.Context, runner Runner, request events.FileRequest, w io.Writer) error {
	again := newRetry()
	for {
		attempt, cancel := context.WithTimeout(ctx, replySlack)
		reply, err := runner.Logs(attempt, request)
		cancel()
		switch {
		case err == nil:
			if _, err := w.Write(reply.Data); err != nil {
				return &writeError{err}
			}
			if reply.EOF || reply.Next >= reply.Size {
				return nil
			}
			if reply.Next > request.Offset || request.Tail != nil {
				request.Offset, request.Tail = reply.Next, nil
				again = newRetry()
				continue
			}
		case classify(err) == refused:
			return fmt.Errorf("read the output of %s: %w", request.ID, err)
		}
		if !again.wait(ctx) {
			return fmt.Errorf("read the output of %s: %w", request.ID, err)
		}
	}
}

// writeError marks a failure of our own stdout.
type writeError struct{ error }

func (e *writeError) Error() string { return "write to stdout: " + e.error.Error() }
func (e *writeError) Unwrap() error { return e.error }
