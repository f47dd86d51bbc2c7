package spawner

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
)

func exited(code int) *events.Exit { return &events.Exit{Code: &code} }

func TestEndOf(t *testing.T) {
	refused := events.Errorf(events.CodeSandboxFailed, events.LayerSandbox, "landlock: EINVAL")
	notFound := events.Errorf(events.CodeCommandNotFound, events.LayerGate, "nope")
	for name, c := range map[string]struct {
		e      evidence
		status events.Status
		reason events.Reason
		code   events.Code
	}{
		"success": {
			e:      evidence{report: &events.Report{Exit: exited(0)}},
			status: events.StatusCompleted,
		},
		"an agent that says that it failed, with exit code 0": {
			e: evidence{report: &events.Report{Exit: exited(0), Agent: &events.AgentResult{},
				AgentError: events.Errorf(events.CodeRateLimited, events.LayerGate, "429"), AgentReason: events.ReasonExit}},
			status: events.StatusFailed, reason: events.ReasonExit, code: events.CodeRateLimited,
		},
		"an agent that used up its turns": {
			e: evidence{report: &events.Report{Exit: exited(1), Agent: &events.AgentResult{StopReason: events.StopMaxTurns},
				AgentError: events.Errorf(events.CodeAgentIncomplete, events.LayerGate, "turns"), AgentReason: events.ReasonMaxTurns}},
			status: events.StatusFailed, reason: events.ReasonMaxTurns, code: events.CodeAgentIncomplete,
		},
		"an agent that was interrupted": {
			e: evidence{report: &events.Report{Exit: exited(0), Ended: events.ReasonUser, Agent: &events.AgentResult{StopReason: events.StopCancelled}},
				stop: &events.Stop{Reason: events.ReasonUser}},
			status: events.StatusCancelled, reason: events.ReasonUser,
		},
		"failure by itself": {
			e:      evidence{report: &events.Report{Exit: exited(7)}},
			status: events.StatusFailed, reason: events.ReasonExit,
		},
		"ended by a signal from elsewhere": {
			e:      evidence{report: &events.Report{Exit: &events.Exit{Signal: "SIGSEGV"}}},
			status: events.StatusFailed, reason: events.ReasonExit,
		},
		"finished before the stop reached it": {
			e:      evidence{report: &events.Report{Exit: exited(0)}, stop: &events.Stop{Reason: events.ReasonUser}},
			status: events.StatusCompleted,
		},
		"stopped by the ladder": {
			e: evidence{report: &events.Report{Exit: &events.Exit{Signal: "SIGTERM"}, Ended: events.ReasonPrompt},
				stop: &events.Stop{Reason: events.ReasonPrompt}},
			status: events.StatusCancelled, reason: events.ReasonPrompt,
		},
		"killed before it could report": {
			e:      evidence{stop: &events.Stop{Reason: events.ReasonUser, Kill: true}, reportErr: errors.New("empty")},
			status: events.StatusCancelled, reason: events.ReasonUser,
		},
		"own deadline": {
			e:      evidence{report: &events.Report{Exit: &events.Exit{Signal: "SIGKILL"}, Ended: events.ReasonDeadline}},
			status: events.StatusFailed, reason: events.ReasonDeadline,
		},
		"coordinator's deadline, no report": {
			e:      evidence{stop: &events.Stop{Reason: events.ReasonDeadline, Kill: true}},
			status: events.StatusFailed, reason: events.ReasonDeadline,
		},
		"its output found no space": {
			e:      evidence{report: &events.Report{Exit: exited(0), Error: events.Errorf(events.CodeStorageFull, events.LayerCoordinator, "no space")}},
			status: events.StatusFailed, reason: events.ReasonLimit, code: events.CodeStorageFull,
		},
		"out of memory": {
			e:      evidence{report: &events.Report{Exit: &events.Exit{Signal: "SIGKILL"}}, outOfMemory: true, maxMemory: 1 << 20},
			status: events.StatusFailed, reason: events.ReasonLimit, code: events.CodeLimit,
		},
		"the supervisor out of memory": {
			e:      evidence{reportErr: errors.New("empty"), outOfMemory: true},
			status: events.StatusFailed, reason: events.ReasonLimit, code: events.CodeLimit,
		},
		"completed though a process of it ran out of memory": {
			e:      evidence{report: &events.Report{Exit: exited(0)}, outOfMemory: true},
			status: events.StatusCompleted,
		},
		"stopped while out of memory": {
			e:      evidence{report: &events.Report{Exit: &events.Exit{Signal: "SIGTERM"}}, outOfMemory: true, stop: &events.Stop{Reason: events.ReasonUser}},
			status: events.StatusFailed, reason: events.ReasonExit,
		},
		"command not found": {
			e:      evidence{report: &events.Report{Error: notFound}},
			status: events.StatusFailed, reason: events.ReasonStart, code: events.CodeCommandNotFound,
		},
		"sandbox not applied": {
			e:      evidence{refusal: refused, stop: nil},
			status: events.StatusFailed, reason: events.ReasonSandbox, code: events.CodeSandboxFailed,
		},
		"crash": {
			e:      evidence{id: "x", reportErr: errors.New("torn"), supervisor: "killed"},
			status: events.StatusFailed, reason: events.ReasonCrash, code: events.CodeChildCrashed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			end := endOf(c.e)
			require.Equal(t, c.status, end.Status)
			require.Equal(t, c.reason, end.Reason)
			if c.code == "" {
				require.Nil(t, end.Error)
			} else {
				require.Equal(t, c.code, end.Error.Code)
			}
		})
	}
}

// A report that was never written is told from one that cannot be read.
func TestWhatIsSaidOfACrash(t *testing.T) {
	e := evidence{id: "x", supervisor: "killed", reportErr: fmt.Errorf("read: %w", rundir.ErrNoReport)}
	require.Equal(t, "run x: its supervisor ended without a report (killed)", endOf(e).Error.Message)
	e.reportErr = rundir.ErrTorn
	require.Equal(t, "run x: its supervisor ended (killed) and its report cannot be used: torn file", endOf(e).Error.Message)
}

func TestStatusOfStop(t *testing.T) {
	for reason, status := range map[events.Reason]events.Status{
		events.ReasonUser: events.StatusCancelled, events.ReasonParent: events.StatusCancelled,
		events.ReasonPrompt: events.StatusCancelled, events.ReasonSession: events.StatusCancelled,
		events.ReasonShutdown: events.StatusCancelled, events.ReasonDependency: events.StatusCancelled,
		events.ReasonDeadline: events.StatusFailed, events.ReasonIdle: events.StatusFailed,
		events.ReasonStart: events.StatusFailed,
	} {
		require.Equal(t, status, statusOfStop(reason), reason)
	}
}
