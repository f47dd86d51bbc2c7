package mcp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hayward-dev/hayward/events"
)

// maxIDs bounds a query, so that its answer has room for each.
const maxIDs = 20

// partBytes bounds what is read of an output at an offset.
const partBytes = 24 << 10

type queryArguments struct {
	IDs    []string `json:"ids"`
	WaitMS *int64   `json:"wait_ms"`
	Mode   string   `json:"mode"`
	Count  int      `json:"count"`
	Offset *int64   `json:"output_offset"`
	Stream string   `json:"stream"`
}

var queryInput = []argument{
	{"ids", list("ids, names, or unambiguous endings of ids with four or more characters", 1, maxIDs)},
	{"wait_ms", number("wait at most that long for mode to be met; a call takes less than a minute whatever is asked. Default 0: do not wait", 0, events.MaxQueryMS)},
	{"mode", word("what to wait for: all have ended (default), any has, or as many as count", string(events.QueryAll), string(events.QueryAny), string(events.QueryCount))},
	{"count", number("with mode count: how many must have ended", 1, maxIDs)},
	{"output_offset", number("with one id: read its output from this byte on, at most 24 KiB, instead of its head and tail", 0, 1<<53)},
	{"stream", word("with output_offset: which output (default stdout)", "stdout", "stderr")},
}

// part is a part of an output.
type part struct {
	ID     string `json:"subagent_id"`
	Stream string `json:"stream"`
	Offset int64  `json:"offset"`
	Next   int64  `json:"next_offset" jsonschema:"the output_offset that reads on"`
	Size   int64  `json:"size"`
	EOF    bool   `json:"eof" jsonschema:"it has ended and nothing follows"`
	Text   string `json:"text"`
}

// query reads subagents, and waits for them if asked to.
func (k *call) query(a queryArguments) (*answer, error) {
	refusal := within("wait_ms", a.WaitMS, 0, events.MaxQueryMS)
	switch {
	case refusal != nil:
	case len(a.IDs) == 0 || len(a.IDs) > maxIDs:
		refusal = events.Errorf(events.CodeInvalidRequest, events.LayerGate, "there are %d ids, not 1 to %d", len(a.IDs), maxIDs)
	case a.Stream != "" && a.Offset == nil:
		refusal = events.Errorf(events.CodeInvalidRequest, events.LayerGate, "stream goes with output_offset")
	case a.Offset != nil && (len(a.IDs) != 1 || a.WaitMS != nil || a.Mode != "" || *a.Offset < 0):
		refusal = events.Errorf(events.CodeInvalidRequest, events.LayerGate, "output_offset is 0 or more and goes with one id and without wait_ms and mode")
	}
	if refusal != nil {
		return nil, refusal
	}
	if a.Offset != nil {
		return k.readPart(a)
	}
	q := events.Query{ParentSessionID: k.o.Session, IDs: a.IDs, Mode: events.QueryMode(a.Mode), Count: a.Count}
	if a.WaitMS == nil || *a.WaitMS == 0 {
		q.Mode, q.Count = "", 0 // they say what to wait for
		r, err := k.c.Query(k.ctx, q)
		return k.queried(r.Value, err)
	}
	stop := k.progress("waiting", func() []string { return a.IDs })
	r, err := k.c.Wait(k.wait, q, k.left(a.WaitMS))
	stop()
	if k.gone(err) {
		return k.queried(k.snapshots(a.IDs))
	}
	return k.queried(r.Value, err)
}

// queried is the answer of a query.
func (k *call) queried(r events.QueryReply, err error) (*answer, error) {
	if err != nil {
		return nil, err
	}
	if len(r.Snapshots) == 0 {
		return nil, events.Errorf(events.CodeUnknownID, events.LayerCoordinator, "there is no subagent %s in this session", quoted(r.Unknown))
	}
	a := &answer{body: body{Unknown: r.Unknown, Warnings: r.Warnings}}
	a.handOver(unique(r.Snapshots))
	if len(r.Unknown) > 0 {
		a.lines = append(a.lines, fmt.Sprintf("There is no subagent %s in this session.", quoted(r.Unknown)))
	}
	if len(a.body.StillRunning) > 0 {
		a.body.NextStep = stillRunning(a.body.StillRunning)
	}
	return a, nil
}

// readPart reads an output from an offset on, whole characters of it.
func (k *call) readPart(a queryArguments) (*answer, error) {
	r, err := k.c.Logs(k.ctx, events.FileRequest{
		ParentSessionID: k.o.Session, ID: a.IDs[0], Stream: a.Stream, Offset: *a.Offset, Max: partBytes,
	})
	if err != nil {
		return nil, err
	}
	data := r.Data
	if r.Next < r.Size { // the end may be within a character
		data = wholeRunes(data)
	}
	p := &part{ID: r.SubagentID, Stream: a.Stream, Offset: r.Offset, Next: r.Offset + int64(len(data)), Size: r.Size, Text: clean(string(data))}
	p.EOF = r.EOF && p.Next == r.Next
	if p.Stream == "" {
		p.Stream = "stdout"
	}
	out := &answer{body: body{Part: p}}
	out.lines = []string{fmt.Sprintf("%s of %s, bytes %d to %d of %d:", p.Stream, p.ID, p.Offset, p.Next, p.Size), p.Text}
	switch {
	case p.Next < p.Size:
		out.body.NextStep = fmt.Sprintf("It goes on: call query_subagents with output_offset %d.", p.Next)
	case !p.EOF:
		out.body.NextStep = "That is all so far; it is still running."
	}
	return out, nil
}

// wholeRunes leaves out the beginning of a character at the end.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i < len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// unique leaves out what is there before: an id and a name may be of the same.
func unique(list []events.Snapshot) []events.Snapshot {
	seen := make(map[string]bool, len(list))
	var out []events.Snapshot
	for _, s := range list {
		if !seen[s.SubagentID] {
			seen[s.SubagentID] = true
			out = append(out, s)
		}
	}
	return out
}

func quoted(ids []string) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf("%q", clean(id)))
	}
	return strings.Join(out, ", ")
}
