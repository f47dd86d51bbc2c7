package plan

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// screenEvery is how often a terminal is redrawn for the elapsed times.
const screenEvery = 200 * time.Millisecond

// The control sequences of a frame. The cursor is hidden only within the one
// write that draws a frame, so no way to die leaves it hidden.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseLine  = "\x1b[K"
	eraseBelow = "\x1b[J"
)

// screenPainter redraws one line for each subagent in place.
type screenPainter struct {
	w     io.Writer
	size  func() (width, height int)
	color bool
	// drawn holds the widths of the lines on the terminal now, to find the way
	// back up when the terminal was made narrower since.
	drawn   []int
	started time.Time
}

func (p *screenPainter) paint(rows []Row, _ []int, now time.Time) error {
	if len(rows) == 0 {
		return nil
	}
	width, height := p.size()
	f := frame{width: width, height: height, color: p.color}
	lines := f.lines(rows, now.Sub(p.started), now)
	var b strings.Builder
	b.WriteString(hideCursor)
	p.home(&b, width)
	p.drawn = p.drawn[:0]
	for _, l := range lines {
		b.WriteString(l + eraseLine + "\r\n")
		p.drawn = append(p.drawn, ansi.StringWidth(l))
	}
	b.WriteString(eraseBelow + showCursor)
	_, err := io.WriteString(p.w, b.String())
	return err
}

// home moves to the first line of the last frame.
func (p *screenPainter) home(b *strings.Builder, width int) {
	up := 0
	for _, w := range p.drawn {
		up += 1 + max(0, w-1)/max(1, width)
	}
	b.WriteString("\r")
	if up > 0 {
		fmt.Fprintf(b, "\x1b[%dA", up)
	}
}

// say writes a line above the frame, which is drawn again below it.
func (p *screenPainter) say(line string) error {
	width, _ := p.size()
	var b strings.Builder
	p.home(&b, width)
	b.WriteString(fit(line, width-1) + eraseLine + "\r\n" + eraseBelow)
	p.drawn = p.drawn[:0]
	_, err := io.WriteString(p.w, b.String())
	return err
}

// finish erases the frame and leaves what is worth keeping: the failures. The
// summary says the rest.
func (p *screenPainter) finish(rows []Row, _ time.Time) error {
	width, _ := p.size()
	var b strings.Builder
	p.home(&b, width)
	b.WriteString(eraseBelow)
	p.drawn = p.drawn[:0]
	for _, row := range rows {
		if row.State == StateFailed {
			for _, l := range endLines(row) {
				b.WriteString(l + "\r\n")
			}
		}
	}
	_, err := io.WriteString(p.w, b.String())
	return err
}

// frame lays rows out for a terminal of that size.
type frame struct {
	width, height int
	color         bool
}

// The columns between which the width is divided.
const (
	stateWidth = 9
	clockWidth = 6
	gap        = "  "
	maxName    = 32
)

// lines returns at most height-1 lines, none of them wider than width-1: a line
// that fills the last column wraps on some terminals.
func (f frame) lines(rows []Row, elapsed time.Duration, now time.Time) []string {
	room := max(0, f.height-2)
	shown := pick(rows, room)
	nameWidth := 0
	for _, i := range shown {
		nameWidth = max(nameWidth, len(rows[i].Name))
	}
	nameWidth = min(nameWidth, maxName, max(8, (f.width-1-stateWidth-clockWidth-3*len(gap))/2))
	lines := make([]string, 0, len(shown)+1)
	for _, i := range shown {
		lines = append(lines, f.line(rows[i], nameWidth, now))
	}
	return append(lines, f.total(rows, len(rows)-len(shown), elapsed))
}

func (f frame) line(row Row, nameWidth int, now time.Time) string {
	var took string
	switch {
	case row.State.Ended() && row.Duration > 0:
		took = clock(row.Duration)
	case !row.State.Ended() && row.State != StateWaiting:
		took = clock(now.Sub(row.Since))
	}
	note := row.LastLine
	if row.State.Ended() {
		if why := row.why(); why != "" {
			note = why
		}
	}
	state := pad(string(row.State), stateWidth)
	text := state + gap + pad(fit(row.Name, nameWidth), nameWidth) + gap +
		fmt.Sprintf("%*s", clockWidth, took) + gap + printable(note)
	text = strings.TrimRight(fit(text, f.width-1), " ")
	if code := stateColor[row.State]; f.color && code != "" && len(text) > len(state) {
		text = "\x1b[" + code + "m" + state + "\x1b[0m" + text[len(state):]
	}
	return text
}

var stateColor = map[State]string{
	StateWaiting: "2", StateQueued: "2", StateStarting: "36", StateRunning: "36",
	StateCompleted: "32", StateFailed: "31", StateCancelled: "33", StateSkipped: "33",
}

// total is the last line of a frame.
func (f frame) total(rows []Row, hidden int, elapsed time.Duration) string {
	count := make(map[State]int)
	ended := 0
	for _, row := range rows {
		count[row.State]++
		if row.State.Ended() {
			ended++
		}
	}
	parts := []string{fmt.Sprintf("%s: %d of %d ended", clock(elapsed), ended, len(rows))}
	for _, s := range []State{StateRunning, StateStarting, StateQueued, StateWaiting, StateFailed, StateCancelled, StateSkipped} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	if hidden > 0 {
		parts = append(parts, fmt.Sprintf("%d not shown", hidden))
	}
	return fit(strings.Join(parts, ", "), f.width-1)
}

// pick returns the indexes, ascending, of the at most room rows that matter
// most now: what runs, what failed, what comes, what is over.
func pick(rows []Row, room int) []int {
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	if len(rows) <= room {
		return all
	}
	sort.SliceStable(all, func(a, b int) bool { return rank[rows[all[a]].State] < rank[rows[all[b]].State] })
	all = all[:room]
	sort.Ints(all)
	return all
}

var rank = map[State]int{
	StateRunning: 0, StateStarting: 0, StateFailed: 1, StateQueued: 2, StateCancelled: 3,
	StateWaiting: 4, StateSkipped: 5, StateCompleted: 6,
}
