package adapter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// claudeResult is the terminal event. Members are read one by one where a change of
// one of them must not lose the others.
type claudeResult struct {
	Subtype        string         `json:"subtype"`
	IsError        bool           `json:"is_error"`
	APIErrorStatus int            `json:"api_error_status"`
	NumTurns       int            `json:"num_turns"`
	Result         string         `json:"result"`
	Errors         []string       `json:"errors"`
	StopReason     string         `json:"stop_reason"`
	SessionID      string         `json:"session_id"`
	TotalCostUSD   *float64       `json:"total_cost_usd"`
	Usage          jsontext.Value `json:"usage"`
	ModelUsage     jsontext.Value `json:"modelUsage"`
	Denials        jsontext.Value `json:"permission_denials"`
	Structured     jsontext.Value `json:"structured_output"`
}

// structured reports whether there is a structured result.
func (r claudeResult) structured() bool { return len(r.Structured) > 0 && r.Structured.Kind() != 'n' }

type claudeModelUsage struct {
	Input         int64    `json:"inputTokens"`
	Output        int64    `json:"outputTokens"`
	CacheRead     int64    `json:"cacheReadInputTokens"`
	CacheCreation int64    `json:"cacheCreationInputTokens"`
	CostUSD       *float64 `json:"costUSD"`
}

type claudeDenied struct {
	Tool  string         `json:"tool_name"`
	ID    string         `json:"tool_use_id"`
	Input jsontext.Value `json:"tool_input"`
}

// end reads the terminal event.
func (s *claudeStream) end(line []byte) ([]events.Item, bool) {
	k := &s.k
	var r claudeResult
	if err := decode(line, &r); err != nil {
		k.ended = true
		k.fail(events.StopError, events.CodeAgentFailed, events.ReasonExit, "its result cannot be read: "+err.Error())
		return nil, false
	}
	k.ended, k.failure = true, nil
	k.result.SessionID = cmp.Or(r.SessionID, k.result.SessionID)
	k.result.Turns = max(k.result.Turns, r.NumTurns)
	k.result.CostUSD = r.TotalCostUSD
	if r.Result != "" && !r.IsError {
		k.answer = r.Result
	}
	if r.structured() && !r.IsError {
		k.answer = string(r.Structured)
	}
	s.usage(r)
	s.denials(r)
	for id, open := range s.tasks.values {
		if open {
			k.warn("its background task %s had not ended", id)
		}
	}
	s.stop(r)
	i := textItem(events.ItemResult, r.Result)
	i.IsError, i.SessionID, i.StopReason = k.failure != nil, k.result.SessionID, k.result.StopReason
	usage := k.result.Usage
	i.Usage = &usage
	return []events.Item{i}, true
}

// usage takes the totals. Those by model have what agents inside the agent used;
// the total is their sum where they say more.
func (s *claudeStream) usage(r claudeResult) {
	var models map[string]claudeModelUsage
	var sum events.Usage
	if decode(r.ModelUsage, &models) == nil {
		for name, u := range models {
			m := events.ModelUsage{Model: name, CostUSD: u.CostUSD, Usage: events.Usage{
				InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheCreationTokens: u.CacheCreation,
			}}
			s.k.result.Models = append(s.k.result.Models, m)
			sum = sum.Add(m.Usage)
		}
		slices.SortFunc(s.k.result.Models, func(a, b events.ModelUsage) int { return cmp.Compare(a.Model, b.Model) })
	}
	var total claudeUsage
	if decode(r.Usage, &total) == nil || sum.Total() > 0 {
		if own := total.usage(); own.Total() > sum.Total() {
			sum = own
		}
		s.k.result.Usage, s.k.settled = sum, true
	}
}

// cut tells the denials of a run whose terminal event, which lists them, is missing.
func (s *claudeStream) cut() {
	for _, id := range s.refused.order {
		if r := s.refused.values[id]; r.sure {
			s.k.deny(events.Denial{Tool: s.k.calls.values[id], ToolID: id, Origin: r.origin})
		}
	}
}

func (s *claudeStream) denials(r claudeResult) {
	var denied []claudeDenied
	if decode(r.Denials, &denied) != nil {
		return
	}
	for _, d := range denied {
		origin := cmp.Or(s.refused.values[d.ID].origin, events.DenialUnknown)
		s.k.deny(events.Denial{Tool: d.Tool, ToolID: d.ID, Origin: origin, Input: string(d.Input)})
	}
}

// claudeDenial tells from a tool's result who denied the call, if somebody did.
func claudeDenial(text string) events.DenialOrigin {
	switch {
	case strings.Contains(text, "haven't granted"), strings.Contains(text, "requires approval"):
		return events.DenialNoApprover
	case strings.Contains(text, "has been denied"), strings.Contains(text, "denied by"), strings.Contains(text, "don't ask mode"):
		return events.DenialRule
	}
	return ""
}

// saysDenied reports whether a tool's result begins as claude's own denials do.
func saysDenied(text string) bool {
	return slices.ContainsFunc([]string{"Claude requested permissions ", "Permission to use ", "This command requires approval"}, func(own string) bool {
		return strings.HasPrefix(text, own)
	})
}

// stop decides what the terminal event means. The flag is believed over the
// subtype: claude says success of a run that could not log in.
func (s *claudeStream) stop(r claudeResult) {
	k := &s.k
	words := cmp.Or(r.Result, strings.Join(r.Errors, "; "), r.Subtype)
	switch {
	case r.Subtype == "error_max_turns":
		k.fail(events.StopMaxTurns, events.CodeAgentIncomplete, events.ReasonMaxTurns, "it used up its turns: "+strconv.Itoa(r.NumTurns))
	case r.Subtype == "error_max_structured_output_retries":
		k.fail(events.StopError, events.CodeOutputMismatch, events.ReasonExit, "it gave no result that meets output_schema: "+words)
	case r.IsError && budgetUsedUp(words):
		k.fail(events.StopBudget, events.CodeLimit, events.ReasonLimit, words)
	case r.Subtype == "error_max_budget_usd":
		k.fail(events.StopBudget, events.CodeAgentIncomplete, events.ReasonLimit, "it used up its budget: "+words)
	case r.StopReason == "refusal":
		k.fail(events.StopRefusal, events.CodeAgentIncomplete, events.ReasonExit, "the model refused: "+words)
	case r.IsError && r.APIErrorStatus != 0:
		k.fail(events.StopError, codeOfStatus(r.APIErrorStatus), events.ReasonExit, words)
	case r.IsError && notLoggedIn(words):
		k.fail(events.StopError, events.CodeNoModelAccess, events.ReasonExit, words)
	case r.IsError && strings.Contains(words, "Connection to the API was lost"), r.IsError && strings.HasPrefix(words, "API Error: Connection"):
		k.fail(events.StopError, events.CodeOverloaded, events.ReasonExit, words)
	case r.IsError && strings.HasPrefix(words, "API Error"):
		k.fail(events.StopError, events.CodeModelFailed, events.ReasonExit, words)
	case r.IsError, r.Subtype != "success":
		k.fail(events.StopError, events.CodeAgentFailed, events.ReasonExit, words)
	case r.StopReason == "max_tokens", r.StopReason == "model_context_window_exceeded":
		k.result.StopReason = events.StopMaxTokens
	case r.structured(): // it ends with the call of the tool that takes the result
		k.result.StopReason = events.StopEnd
	case r.StopReason == "tool_use", r.StopReason == "pause_turn":
		k.result.StopReason = events.StopCut
	default:
		k.result.StopReason = events.StopEnd
	}
}

// budgetUsedUp recognizes the words of Hayward's gateway.
func budgetUsedUp(words string) bool {
	return strings.Contains(words, "the budget of ") && strings.Contains(words, "is used up")
}

func notLoggedIn(words string) bool {
	words = strings.ToLower(words)
	return slices.ContainsFunc([]string{"not logged in", "/login", "invalid api key", "api key not found"}, func(s string) bool {
		return strings.Contains(words, s)
	})
}
