package spawner

import (
	"errors"
	"strconv"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// evidence is all that is known of a child once nothing of it is left.
type evidence struct {
	id string
	// report is report.json, nil if there is none; reportErr why it is unusable.
	report    *events.Report
	reportErr error
	// stop is what was asked of the child, nil if nothing was.
	stop *events.Stop
	// refusal is why it could not be started or confined.
	refusal *events.Error
	// supervisor is how hayward-child itself ended, for people.
	supervisor string
	// outOfMemory says that the kernel ended a process of the tree because it used
	// maxMemory bytes.
	outOfMemory bool
	maxMemory   int64
}

// endOf decides how a child ended. The report is believed over everything: a
// child that finished before a stop reached it has finished.
func endOf(e evidence) events.End {
	end := events.End{At: time.Now().UTC()}
	if e.report != nil {
		end.Exit = e.report.Exit
		end.StderrTail = e.report.StderrTail
		end.Agent = e.report.Agent
	}
	switch {
	case e.refusal != nil:
		end.Status, end.Reason, end.Error = events.StatusFailed, events.ReasonStart, e.refusal
		if e.refusal.Layer == events.LayerSandbox {
			end.Reason = events.ReasonSandbox
		}
	case e.report != nil && e.report.Error != nil && e.report.Exit != nil:
		// It ran, and what it put out found no place.
		end.Status, end.Reason, end.Error = events.StatusFailed, events.ReasonLimit, e.report.Error
	case e.report != nil && e.report.Error != nil:
		end.Status, end.Reason, end.Error = events.StatusFailed, events.ReasonStart, e.report.Error
	case e.report != nil && e.report.Ended != "":
		end.Reason = e.report.Ended
		end.Status = statusOfStop(end.Reason)
	case e.report != nil && e.report.AgentError == nil && succeeded(e.report.Exit):
		end.Status = events.StatusCompleted
	case e.outOfMemory && e.stop == nil:
		end.Status, end.Reason = events.StatusFailed, events.ReasonLimit
		end.Error = events.Errorf(events.CodeLimit, events.LayerCoordinator, "run %s: it used the %d bytes of memory that it may use", e.id, e.maxMemory).
			WithRemedy("raise --max-memory").WithDetail("limit", "memory").WithDetail("max", strconv.FormatInt(e.maxMemory, 10))
	case e.report != nil && e.report.AgentError != nil:
		end.Status, end.Reason, end.Error = events.StatusFailed, e.report.AgentReason, e.report.AgentError
	case e.report != nil:
		end.Status, end.Reason = events.StatusFailed, events.ReasonExit
	case e.stop != nil:
		end.Reason = e.stop.Reason
		end.Status = statusOfStop(end.Reason)
	default:
		end.Status, end.Reason = events.StatusFailed, events.ReasonCrash
		end.Error = events.Errorf(events.CodeChildCrashed, events.LayerCoordinator,
			"run %s: its supervisor ended without a report (%s)", e.id, e.supervisor)
		if !errors.Is(e.reportErr, rundir.ErrNoReport) {
			end.Error = events.Errorf(events.CodeChildCrashed, events.LayerCoordinator,
				"run %s: its supervisor ended (%s) and its report cannot be used: %w", e.id, e.supervisor, e.reportErr)
		}
	}
	return end
}

func succeeded(exit *events.Exit) bool {
	return exit != nil && exit.Code != nil && *exit.Code == 0
}

// statusOfStop tells ends that were asked for from those that a bound enforced.
func statusOfStop(r events.Reason) events.Status {
	switch r {
	case events.ReasonDeadline, events.ReasonIdle, events.ReasonStart, events.ReasonCrash, events.ReasonLimit, events.ReasonSandbox:
		return events.StatusFailed
	}
	return events.StatusCancelled
}
