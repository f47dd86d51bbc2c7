package child

import (
	"encoding/base64"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hayward-dev/hayward/events"
)

// stream is one of the command's two output streams.
type stream int

const (
	stdout stream = iota
	stderr
	streams
)

func (s stream) String() string {
	if s == stderr {
		return "stderr"
	}
	return "stdout"
}

// maxPendingText bounds the text of one stream that waits for the recorder;
// what comes while it is full is told by its size alone.
const maxPendingText = 64 << 10

// maxPendingSaid bounds what an agent said that waits for the recorder, each item
// counted with itemOverhead.
const (
	maxPendingSaid = 4 << 20
	itemOverhead   = 512
)

// outbox holds what happened until the recorder takes it. Putting something in
// never waits: the text of output is what gives way.
type outbox struct {
	// wake has one slot: there is something to take.
	wake chan struct{}

	mu      sync.Mutex
	items   []events.Item   // guarded by mu
	pending [streams]output // guarded by mu
	spoken  int             // guarded by mu; the size of what an agent said in items
}

// output is a part of a stream that waits: its text, then omitted more bytes.
type output struct {
	since   time.Time // of the first byte
	offset  int64
	text    []byte
	omitted int64
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// add puts an item in. Whoever calls it does so a bounded number of times.
func (o *outbox) add(item events.Item) {
	item.At = time.Now().UTC()
	o.mu.Lock()
	o.items = append(o.items, item)
	o.mu.Unlock()
	o.notify()
}

// notePause is how long a remark waits for others, see soon.
const notePause = 20 * time.Millisecond

// soon puts a remark of the supervisor in that need not go out by itself: most
// often something follows within notePause, and both are written at once.
func (o *outbox) soon(text string) {
	o.mu.Lock()
	o.items = append(o.items, events.Item{At: time.Now().UTC(), Kind: events.ItemNote, Text: text})
	o.mu.Unlock()
	time.AfterFunc(notePause, o.notify)
}

// note puts a remark of the supervisor in.
func (o *outbox) note(text string) { o.add(events.Item{Kind: events.ItemNote, Text: text}) }

// said puts in what an agent said. What comes while there is too much of it is told
// by its place in stdout alone.
func (o *outbox) said(items []events.Item) {
	if len(items) == 0 {
		return
	}
	now := time.Now().UTC()
	o.mu.Lock()
	for _, item := range items {
		item.At = now
		if o.spoken += itemOverhead + len(item.Text) + len(item.Input); o.spoken <= maxPendingSaid {
			o.items = append(o.items, item)
			continue
		}
		end := item.Offset + item.Bytes
		if last := &o.items[len(o.items)-1]; last.Kind == events.ItemEvent && last.TextOmitted && last.Text == "" {
			last.Bytes = end - last.Offset
			continue
		}
		o.items = append(o.items, events.Item{
			At: now, Kind: events.ItemEvent, Stream: item.Stream, Offset: item.Offset, Bytes: item.Bytes, TextOmitted: true,
		})
	}
	o.mu.Unlock()
	o.notify()
}

// output puts in what was written to s at offset. It copies p.
func (o *outbox) output(s stream, offset int64, p []byte) {
	o.mu.Lock()
	out := &o.pending[s]
	if len(out.text) == 0 && out.omitted == 0 {
		out.since, out.offset = time.Now().UTC(), offset
	}
	if out.omitted == 0 {
		n := min(len(p), maxPendingText-len(out.text))
		out.text = append(out.text, p[:n]...)
		p = p[n:]
	}
	out.omitted += int64(len(p))
	o.mu.Unlock()
	o.notify()
}

func (o *outbox) notify() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take empties the outbox. Unless final, the bytes of an unfinished character
// at the end of a text stay for the next time.
func (o *outbox) take(final bool) []events.Item {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := o.items
	o.items, o.spoken = nil, 0
	for s := range streams {
		items = o.pending[s].take(items, s, final)
	}
	return items
}

func (out *output) take(items []events.Item, s stream, final bool) []events.Item {
	text, offset := out.text, out.offset
	held := 0
	if !final && out.omitted == 0 {
		held = unfinished(text)
	}
	for rest := text[:len(text)-held]; len(rest) > 0; {
		item := events.Item{At: out.since, Kind: events.ItemOutput, Stream: s.String(), Offset: offset}
		var n int
		item.Text, item.Encoding, n = itemText(rest)
		item.Bytes = int64(n)
		items = append(items, item)
		rest, offset = rest[n:], offset+int64(n)
	}
	offset += int64(held)
	if out.omitted > 0 {
		items = append(items, events.Item{
			At: out.since, Kind: events.ItemOutput, Stream: s.String(),
			Offset: offset, Bytes: out.omitted, TextOmitted: true,
		})
		offset += out.omitted
	}
	out.text = out.text[:copy(out.text, text[len(text)-held:])]
	out.offset, out.omitted = offset-int64(held), 0
	return items
}

// itemText returns the first part of p that fits an item, how it is encoded and
// how many bytes it stands for.
func itemText(p []byte) (text, encoding string, n int) {
	n = min(len(p), events.MaxItemText)
	if n < len(p) {
		n -= unfinished(p[:n])
	}
	if utf8.Valid(p[:n]) {
		return string(p[:n]), "", n
	}
	n = min(len(p), events.MaxItemText/4*3)
	return base64.StdEncoding.EncodeToString(p[:n]), "base64", n
}

// unfinished returns how many bytes at the end of p begin a character that may
// be completed by what follows.
func unfinished(p []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if tail := p[len(p)-i:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return i
		}
	}
	return 0
}
