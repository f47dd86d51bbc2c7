package adapter

import (
	"fmt"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// maxKnown bounds the messages and calls that are remembered at once. Older ones
// have ended.
const maxKnown = 512

// maxAnswer bounds the answer, which is a part of the report.
const maxAnswer = 1 << 20

// maxWarnings bounds the warnings of a run.
const maxWarnings = 16

// known is what has been learnt from a stream so far.
type known struct {
	result events.AgentResult
	// answer is the agent's last text, and text the last of anybody in it.
	answer, text string
	lastTool     string
	// ended says that the terminal event came; failure is what it said.
	ended   bool
	failure *events.Error
	reason  events.Reason
	// settled says that result has the usage of the whole run.
	settled bool

	usages recent[events.Usage] // by message
	calls  recent[string]       // the tool of a call
}

// total is the usage as far as it is known.
func (k *known) total() events.Usage {
	if k.settled {
		return k.result.Usage
	}
	return k.result.Usage.Add(k.openUsage())
}

// count takes the usage that a message tells. It tells it more than once.
func (k *known) count(message string, u events.Usage) {
	k.usages.set(message, u, func(_ string, old events.Usage) { k.result.Usage = k.result.Usage.Add(old) })
}

func (k *known) openUsage() (sum events.Usage) {
	for _, u := range k.usages.values {
		sum = sum.Add(u)
	}
	return sum
}

func (k *known) called(tool, id string) {
	k.result.ToolCalls++
	k.lastTool, _ = head(tool, events.MaxWord)
	k.calls.set(id, k.lastTool, nil)
}

func (k *known) warn(format string, args ...any) {
	if len(k.result.Warnings) < maxWarnings {
		k.result.Warnings = append(k.result.Warnings, fmt.Sprintf(format, args...))
	}
}

func (k *known) deny(d events.Denial) {
	k.result.DenialCount++
	if len(k.result.Denials) < events.MaxDenials {
		d.Input, _ = head(strings.ToValidUTF8(d.Input, "\uFFFD"), events.MaxLastLine)
		k.result.Denials = append(k.result.Denials, d)
	}
}

// Outcome is how an agent ended.
type Outcome struct {
	Result events.AgentResult
	// Answer is the last text that the agent said, whole.
	Answer string
	// Error says why this is no success, with the reason of such an end. It is nil
	// for a success, and where the supervisor ended the agent: that end has its
	// reason.
	Error  *events.Error
	Reason events.Reason
}

// End says how the agent ended: exit is how its process did, ended why the
// supervisor ended it, empty if it did not. The last line needs no line end.
func (r *Reader) End(id string, exit *events.Exit, ended events.Reason) ([]events.Item, Outcome) {
	var items []events.Item
	if r.length > 0 {
		items = r.endLine()
	}
	k := r.stream.known()
	k.result.Agent = r.spec.Agent
	if !k.ended {
		r.stream.cut()
	}
	if !k.settled {
		k.result.Usage = k.total()
		k.result.UsageIncomplete = true
	}
	out := Outcome{}
	var cut bool
	if out.Answer, cut = head(k.answer, maxAnswer); cut {
		k.warn("its answer has %d bytes, of which the first %d are kept; stdout has all", len(k.answer), len(out.Answer))
	}
	out.Error, out.Reason = k.verdict(id, exit, ended)
	if k.result.DenialCount > 0 {
		k.warn("%d tool calls were denied", k.result.DenialCount)
		if out.Error == nil && ended == "" && r.spec.RequireNoDenials {
			out.Reason = events.ReasonExit
			out.Error = events.Errorf(events.CodeToolDenied, events.LayerPermission,
				"run %s: %d tool calls were denied, and it may have none", id, k.result.DenialCount).
				WithDetail("tool", k.result.Denials[0].Tool).
				WithRemedy("allow the tool in the agent's definition, or leave out require_no_denials")
		}
	}
	out.Result = k.result
	return items, out
}

// verdict decides. Only a natural end with an answer and exit code 0 is a success.
func (k *known) verdict(id string, exit *events.Exit, ended events.Reason) (*events.Error, events.Reason) {
	if ended != "" {
		if !k.ended || k.failure != nil {
			k.result.StopReason = events.StopCancelled
		}
		return nil, ""
	}
	incomplete := func(format string, args ...any) *events.Error {
		return events.Errorf(events.CodeAgentIncomplete, events.LayerGate, "run %s: "+format, append([]any{id}, args...)...).
			WithRemedy("spawn it again")
	}
	switch {
	case !k.ended:
		k.result.StopReason = events.StopCut
		err := incomplete("its stream ended without saying how; it %s", exitText(exit))
		if k.failure != nil { // what it said last before that
			err.Code, err.Message = k.failure.Code, err.Message+": "+k.failure.Message
		}
		return err, events.ReasonExit
	case k.failure != nil:
		k.failure.Message = "run " + id + ": " + k.failure.Message
		return k.failure, k.reason
	case k.result.StopReason != events.StopEnd:
		return incomplete("it stopped before its natural end: %s", k.result.StopReason), events.ReasonExit
	case exit == nil || exit.Code == nil || *exit.Code != 0:
		k.result.StopReason = events.StopError
		return events.Errorf(events.CodeAgentFailed, events.LayerGate, "run %s: it said that it succeeded, and %s", id, exitText(exit)), events.ReasonExit
	case strings.TrimSpace(k.answer) == "":
		return incomplete("it ended without an answer"), events.ReasonExit
	}
	return nil, ""
}

// fail keeps what the terminal event said of a failure.
func (k *known) fail(stop events.StopReason, code events.Code, reason events.Reason, message string) {
	k.result.StopReason, k.reason = stop, reason
	message, cut := head(strings.TrimSpace(message), maxMessage)
	if cut {
		message += "…"
	}
	k.failure = events.Errorf(code, events.LayerGate, "%s", message)
	switch code {
	case events.CodeNoModelAccess:
		k.failure.WithRemedy("give Hayward an API key for the model, or the agent a log-in")
	case events.CodeRateLimited, events.CodeOverloaded:
		k.failure.WithRemedy("spawn it again later")
	case events.CodeLimit:
		k.failure.WithRemedy("raise the budget, or give it less to do")
	case events.CodeAgentIncomplete:
		k.failure.WithRemedy("spawn it again")
	}
}

// maxMessage bounds an agent's own words in an error.
const maxMessage = 1024

// codeOfStatus is the error that an HTTP status of a model API is.
func codeOfStatus(status int) events.Code {
	switch status {
	case 401, 403:
		return events.CodeNoModelAccess
	case 429:
		return events.CodeRateLimited
	case 502, 503, 504, 529:
		return events.CodeOverloaded
	}
	return events.CodeModelFailed
}

func exitText(exit *events.Exit) string {
	switch {
	case exit == nil:
		return "ended in an unknown way"
	case exit.Code != nil:
		return fmt.Sprintf("exited with code %d", *exit.Code)
	case exit.Signal != "":
		return "was ended by " + exit.Signal
	}
	return "ended in an unknown way"
}

// recent is a map that forgets what was put in first.
type recent[V any] struct {
	values map[string]V
	order  []string
}

// set puts a value in. What is forgotten for it is told to drop, if that is not nil.
func (r *recent[V]) set(key string, v V, drop func(string, V)) {
	if r.values == nil {
		r.values = map[string]V{}
	}
	if _, ok := r.values[key]; !ok {
		if len(r.order) == maxKnown {
			oldest := r.order[0]
			r.order = append(r.order[:0], r.order[1:]...)
			if drop != nil {
				drop(oldest, r.values[oldest])
			}
			delete(r.values, oldest)
		}
		r.order = append(r.order, key)
	}
	r.values[key] = v
}
