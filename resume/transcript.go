package resume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Summary is what is in a transcript.
type Summary struct {
	// Items counts the items, Tokens is what they are taken for.
	Items  int
	Tokens int64
	// SessionID and Model are those that an agent named last.
	SessionID, Model string
	// Unanswered counts the calls of tools that have no result, Torn the bytes of a
	// last item that is not whole.
	Unanswered int
	Torn       int
}

// maxOpen bounds the calls that are open at once.
const maxOpen = 1 << 16

// walk calls each with the items of a transcript. Items are numbered without a gap,
// else some were lost. A last line that is not whole is left out.
func walk(r io.Reader, each func(events.Item) error) (torn int, err error) {
	in := newLines(r)
	var bad error
	var last uint64
	for {
		line, _, err := in.next()
		if errors.Is(err, io.EOF) {
			return torn, nil
		}
		if err != nil {
			return torn, err
		}
		if bad != nil {
			return torn, bad
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var item events.Item
		if err := events.DecodeRecord(line, &item); err != nil {
			bad, torn = fmt.Errorf("line %d: %w", in.number, err), len(line)
			continue
		}
		if item.Seq != last+1 {
			return torn, fmt.Errorf("line %d: item %d follows item %d", in.number, item.Seq, last)
		}
		last = item.Seq
		if err := each(item); err != nil {
			return torn, err
		}
	}
}

// calls are the calls of tools without a result, in the order in which they were made.
type calls struct {
	open  map[string]events.Item
	order []string
}

// take notes a call, and settles the one of a result. It returns false for a result
// of no open call: each call has one.
func (c *calls) take(i events.Item) (bool, error) {
	switch i.Kind {
	case events.ItemToolCall:
		if c.open == nil {
			c.open = make(map[string]events.Item)
		}
		if len(c.open) >= maxOpen {
			return false, fmt.Errorf("over %d calls of tools have no result", maxOpen)
		}
		if _, again := c.open[i.ToolID]; !again {
			c.order = append(c.order, i.ToolID)
		}
		i.Text, i.Input = "", nil
		c.open[i.ToolID] = i
	case events.ItemToolResult:
		if _, ok := c.open[i.ToolID]; !ok {
			return false, nil
		}
		delete(c.open, i.ToolID)
		if len(c.order) > 2*maxOpen {
			c.order = c.left()
		}
	}
	return true, nil
}

// left are the ids of the open calls.
func (c *calls) left() (ids []string) {
	seen := make(map[string]bool, len(c.open))
	for _, id := range c.order {
		if _, ok := c.open[id]; ok && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// add takes an item into the summary.
func (s *Summary) add(i events.Item) {
	s.Items++
	s.Tokens += Estimate(i)
	if i.Kind == events.ItemSession {
		if i.SessionID != "" {
			s.SessionID = i.SessionID
		}
		if i.Model != "" {
			s.Model = i.Model
		}
	}
}

// Scan reads a transcript.
func Scan(r io.Reader) (Summary, error) {
	var s Summary
	var open calls
	torn, err := walk(r, func(i events.Item) error {
		s.add(i)
		_, err := open.take(i)
		return err
	})
	s.Torn, s.Unanswered = torn, len(open.open)
	return s, err
}

// unanswered is the result of a call that was open when its run ended.
const unanswered = "The run ended before this call had a result. It may have taken effect."

// CopyTranscript writes the transcript of subagent id for the one that goes on from
// it: the items with their numbers and the id, paths rewritten, the torn tail left
// out, and a result for each call that has none.
func CopyTranscript(w io.Writer, r io.Reader, id string, p Paths) (Summary, error) {
	var s Summary
	var open calls
	var number uint64
	write := func(i events.Item) error {
		number++
		i.Seq = number
		if i.From == "" {
			i.From = id
		}
		s.add(i)
		line, err := events.MarshalRecord(i)
		if err != nil {
			return err
		}
		_, err = w.Write(append(line, '\n'))
		return err
	}
	answer := func(ids []string) error {
		for _, tool := range ids {
			call := open.open[tool]
			delete(open.open, tool)
			err := write(events.Item{
				At: time.Now().UTC(), Kind: events.ItemToolResult, Tool: call.Tool, ToolID: tool, ParentToolID: call.ParentToolID,
				IsError: true, Text: unanswered, Synthetic: true,
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	torn, err := walk(r, func(i events.Item) error {
		if _, again := open.open[i.ToolID]; again && i.Kind == events.ItemToolCall {
			if err := answer([]string{i.ToolID}); err != nil {
				return err
			}
		}
		known, err := open.take(i)
		if err != nil {
			return err
		}
		if !known { // a second result, or one of nothing
			i.Kind = events.ItemEvent
		}
		if err := p.item(&i); err != nil {
			return err
		}
		return write(i)
	})
	if err == nil {
		err = answer(open.left())
	}
	s.Torn = torn
	return s, err
}

// item rewrites the paths of an item.
func (p Paths) item(i *events.Item) error {
	if len(p) == 0 {
		return nil
	}
	if i.Encoding == "" {
		i.Text = p.Text(i.Text)
	}
	for n, arg := range i.Argv {
		i.Argv[n] = p.Text(arg)
	}
	if len(i.Input) == 0 {
		return nil
	}
	input, err := p.JSON(i.Input)
	i.Input = input
	return err
}
