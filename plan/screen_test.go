package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

var frameTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// frameRows is a run in the middle, with everything that can be shown.
func frameRows() []Row {
	code, since := 3, func(d time.Duration) time.Time { return frameTime.Add(-d) }
	return []Row{
		{Name: "modules", State: StateCompleted, Duration: 12345 * time.Millisecond, LastLine: "ok\x1b[31m red"},
		{Name: "vet-events", State: StateRunning, Since: since(65 * time.Second), LastLine: "checking\tevents and everything below it, with a long line of output"},
		{Name: "vet-internal-with-a-very-long-name-indeed", State: StateRunning, Since: since(3 * time.Hour), LastLine: "日本語の出力 wide characters 👩‍👩‍👧 and more of them 日本語の出力"},
		{Name: "format", State: StateFailed, Reason: events.ReasonExit, Duration: 900 * time.Millisecond, ExitCode: &code},
		{Name: "lines", State: StateFailed, Reason: events.ReasonDeadline, Duration: time.Minute, Message: "ran longer than 60s"},
		{Name: "imports", State: StateQueued, Since: since(400 * time.Millisecond)},
		{Name: "api", State: StateStarting, Since: since(100 * time.Millisecond), LastLine: "\x1b]0;title\x07\x1b[2J\u202eevil\r\n"},
		{Name: "docs", State: StateCancelled, Reason: events.ReasonUser, Duration: 2 * time.Second, Signal: "SIGTERM"},
		{Name: "tests", State: StateSkipped, Reason: events.ReasonDependency, BlockedBy: "format"},
		{Name: "report", State: StateWaiting},
	}
}

func TestFrames(t *testing.T) {
	for _, size := range []struct{ width, height int }{{120, 40}, {80, 24}, {40, 24}, {20, 24}, {80, 7}, {80, 2}, {3, 3}} {
		name := fmt.Sprintf("%dx%d", size.width, size.height)
		t.Run(name, func(t *testing.T) {
			lines := frame{width: size.width, height: size.height}.lines(frameRows(), 83*time.Second, frameTime)
			require.LessOrEqual(t, len(lines), max(1, size.height-1))
			for _, l := range lines {
				require.LessOrEqual(t, ansi.StringWidth(l), size.width-1)
				require.NotContains(t, l, "\x1b")
			}
			golden(t, "screen/"+name+".golden", strings.Join(lines, "\n")+"\n")
		})
	}
}

// TestColorChangesNothingElse: with the colors taken out, a frame is the one
// without colors.
func TestColorChangesNothingElse(t *testing.T) {
	plain := frame{width: 80, height: 24}.lines(frameRows(), time.Second, frameTime)
	color := frame{width: 80, height: 24, color: true}.lines(frameRows(), time.Second, frameTime)
	require.Contains(t, color[0], "\x1b[32mcompleted\x1b[0m")
	for i := range color {
		require.Equal(t, plain[i], ansi.Strip(color[i]))
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 40 * time.Millisecond: "0.0s", 1990 * time.Millisecond: "1.9s", 59999 * time.Millisecond: "59.9s",
		time.Minute: "1m00s", 245 * time.Second: "4m05s", time.Hour + 3*time.Minute: "1h03m", 100 * time.Hour: "100h00m",
	} {
		require.Equal(t, want, clock(d))
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\tb": "a b", "\x1b[31mred\x1b[0m": "red", "\x1b]0;title\x07x": "x", "bad\xffutf": "bad\ufffdutf",
		"nul\x00bell\x07back\b": "nulbellback", "c1\u009b31m": "c131m", "\u202eevil\u2069": "evil", "日本": "日本",
	} {
		require.Equal(t, want, printable(in), "%q", in)
	}
}

// TestScreenRedrawsInPlace replays what is written on a small model of a
// terminal: the frame stays where it is, narrower windows included, the cursor
// is never left hidden, and at the end only the failures remain.
func TestScreenRedrawsInPlace(t *testing.T) {
	term := &terminal{}
	width := 80
	p := &screenPainter{w: term, started: frameTime, size: func() (int, int) { return width, 24 }}
	require.NoError(t, p.say("run 1 of 10 subagents"))
	require.NoError(t, p.paint(frameRows(), nil, frameTime))
	first := term.String()
	require.NoError(t, p.paint(frameRows(), nil, frameTime))
	require.Equal(t, first, term.String())
	require.Equal(t, 1, strings.Count(first, "vet-events"))

	require.NoError(t, p.say("interrupted"))
	require.NoError(t, p.paint(frameRows(), nil, frameTime))
	require.True(t, strings.HasPrefix(term.String(), "run 1 of 10 subagents\ninterrupted\ncompleted  modules"), term.String())
	require.Equal(t, 1, strings.Count(term.String(), "vet-events"))

	require.NoError(t, p.paint(frameRows()[:3], nil, frameTime))
	require.NotContains(t, term.String(), "report")
	require.False(t, term.hidden)

	require.NoError(t, p.finish(frameRows(), frameTime))
	require.Equal(t, "run 1 of 10 subagents\ninterrupted\n"+
		"failed     format  0.9s  exit 3\nfailed     lines  1m00s  (deadline)  ran longer than 60s\n", term.String())
}

// TestScreenFindsHomeWhenNarrower: lines that wrap once the window is narrower
// take more rows on the way up.
func TestScreenFindsHomeWhenNarrower(t *testing.T) {
	var b strings.Builder
	p := &screenPainter{drawn: []int{79, 40, 0}}
	p.home(&b, 40)
	require.Equal(t, "\r\x1b[4A", b.String())
}

// terminal understands what a painter writes and keeps the text.
type terminal struct {
	lines  []string
	row    int
	hidden bool
}

func (m *terminal) Write(b []byte) (int, error) {
	s := string(b)
	for s != "" {
		switch {
		case strings.HasPrefix(s, hideCursor):
			m.hidden, s = true, s[len(hideCursor):]
		case strings.HasPrefix(s, showCursor):
			m.hidden, s = false, s[len(showCursor):]
		case strings.HasPrefix(s, eraseLine):
			s = s[len(eraseLine):]
		case strings.HasPrefix(s, eraseBelow):
			m.lines, s = m.lines[:min(m.row, len(m.lines))], s[len(eraseBelow):]
		case strings.HasPrefix(s, "\x1b["):
			var up int
			if _, err := fmt.Sscanf(s, "\x1b[%dA", &up); err != nil {
				return 0, fmt.Errorf("unknown sequence %q", s)
			}
			m.row = max(0, m.row-up)
			s = s[strings.IndexByte(s, 'A')+1:]
		case s[0] == '\r':
			s = s[1:]
		default:
			line, rest, _ := strings.Cut(s, "\n")
			line = strings.TrimSuffix(strings.ReplaceAll(line, eraseLine, ""), "\r")
			for len(m.lines) <= m.row {
				m.lines = append(m.lines, "")
			}
			m.lines[m.row] = line
			m.row++
			s = rest
		}
	}
	return len(b), nil
}

func (m *terminal) String() string {
	if len(m.lines) == 0 {
		return ""
	}
	return strings.Join(m.lines, "\n") + "\n"
}

func TestLines(t *testing.T) {
	var b strings.Builder
	p := &linePainter{w: &b}
	rows := frameRows()
	rows[3].StderrTail = "one\n\x1b[1mtwo\x1b[0m\n\nthree\n"
	all := indexes(len(rows))
	require.NoError(t, p.say("run 1 of 10 subagents"))
	require.NoError(t, p.paint(rows, all, frameTime))
	require.NoError(t, p.paint(rows, all, frameTime), "nothing changed, so nothing is written")
	rows[1].State, rows[1].Duration = StateCompleted, time.Second
	require.NoError(t, p.paint(rows, []int{1}, frameTime))
	golden(t, "lines.golden", b.String())
}

// brokenWriter fails after the first write, as a terminal that was closed.
type brokenWriter struct{ writes int }

func (w *brokenWriter) Write(b []byte) (int, error) {
	w.writes++
	if w.writes > 1 {
		return 0, errors.New("input/output error")
	}
	return len(b), nil
}

// TestDisplayOnADeadTerminal: the run goes on and the display says nothing more.
func TestDisplayOnADeadTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &brokenWriter{}
		d := newDisplay(&linePainter{w: w}, 0)
		f := newFake(map[string]behavior{"a": {lasts: time.Second}, "b": {lasts: time.Second}})
		s, err := parse(t, entries("a", "b: a", "c: b")).Run(t.Context(), f, Options{Observer: d})
		d.close()
		require.NoError(t, err)
		require.True(t, s.Success)
		require.Equal(t, 2, w.writes)
	})
}

// stuckWriter takes nothing until it is released, as a terminal after Ctrl-S.
type stuckWriter struct{ release chan struct{} }

func (w stuckWriter) Write(b []byte) (int, error) {
	<-w.release
	return len(b), nil
}

// TestDisplayThatTakesNothingHoldsUpNothing: the run ends though no line could
// be written.
func TestDisplayThatTakesNothingHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stuckWriter{make(chan struct{})}
		d := newDisplay(&linePainter{w: w}, 0)
		f := newFake(map[string]behavior{"a": {lasts: time.Second}})
		s, err := parse(t, entries("a", "b: a", "c: b")).Run(t.Context(), f, Options{Observer: d})
		require.NoError(t, err)
		require.True(t, s.Success)
		close(w.release)
		d.close()
	})
}
