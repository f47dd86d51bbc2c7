package load

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hayward-dev/hayward/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

func accepted(id string, does Kind) Entry {
	return Entry{Kind: EntryAccepted, ID: id, Does: does, Asked: at(0), At: at(2)}
}

func ended(id string, status events.Status, code int) Entry {
	started, end := at(10), at(30)
	return Entry{Kind: EntryDelivered, ID: id, At: at(35), End: &End{
		DedupeID: id + ".1", Status: status, ExitCode: &code, Created: at(1), Started: &started, FirstOutput: &started, Ended: &end,
	}}
}

func acked(id string) Entry { return Entry{Kind: EntryAcked, ID: id, Text: id + ".1"} }

func TestLedger(t *testing.T) {
	second := ended("a", events.StatusCompleted, 0)
	second.End.DedupeID = "a.2"
	stormed := ended("a", events.StatusCancelled, 0)
	stormed.Stormed = true
	one := map[string]int{"a": 1}
	for name, c := range map[string]struct {
		entries []Entry
		ran     map[string]int
		want    Counts
		faults  int
	}{
		"one": {
			entries: []Entry{accepted("a", Plain), ended("a", events.StatusCompleted, 0), acked("a")},
			ran:     one, want: Counts{Accepted: 1, Completed: 1, Delivered: 1},
		},
		"its end is told before its acceptance": {
			entries: []Entry{ended("a", events.StatusCompleted, 0), acked("a"), accepted("a", Plain)},
			ran:     one, want: Counts{Accepted: 1, Completed: 1, Delivered: 1},
		},
		"again before the acknowledgement": {
			entries: []Entry{accepted("a", Plain), ended("a", events.StatusCompleted, 0), ended("a", events.StatusCompleted, 0), acked("a")},
			ran:     one, want: Counts{Accepted: 1, Completed: 1, Delivered: 1, Redelivered: 1},
		},
		"again after the acknowledgement": {
			entries: []Entry{accepted("a", Plain), ended("a", events.StatusCompleted, 0), acked("a"), ended("a", events.StatusCompleted, 0)},
			ran:     one, want: Counts{Accepted: 1, Completed: 1, Delivered: 1, Duplicated: 1}, faults: 1,
		},
		"two ends": {
			entries: []Entry{accepted("a", Plain), ended("a", events.StatusCompleted, 0), second},
			ran:     one, want: Counts{Accepted: 1, Completed: 1, Delivered: 1, Duplicated: 1}, faults: 1,
		},
		"two runs": {
			entries: []Entry{accepted("a", Plain), ended("a", events.StatusCompleted, 0)},
			ran:     map[string]int{"a": 2}, want: Counts{Accepted: 1, Completed: 1, Delivered: 1, Duplicated: 1}, faults: 1,
		},
		"lost": {
			entries: []Entry{accepted("a", Plain)},
			ran:     one, want: Counts{Accepted: 1, Lost: 1}, faults: 1,
		},
		"completed and never ran": {
			entries: []Entry{accepted("a", Plain), ended("a", events.StatusCompleted, 0)},
			want:    Counts{Accepted: 1, Completed: 1, Delivered: 1, Lost: 1}, faults: 1,
		},
		"never accepted": {
			entries: []Entry{ended("a", events.StatusCompleted, 0)},
			want:    Counts{Wrong: 1}, faults: 1,
		},
		"another end than it should": {
			entries: []Entry{accepted("a", Fail), ended("a", events.StatusCompleted, 0)},
			ran:     one, want: Counts{Accepted: 1, Completed: 1, Delivered: 1, Wrong: 1}, faults: 1,
		},
		"cancelled by a storm": {
			entries: []Entry{accepted("a", Plain), stormed},
			want:    Counts{Accepted: 1, Cancelled: 1, Delivered: 1},
		},
		"cancelled by nobody": {
			entries: []Entry{accepted("a", Plain), ended("a", events.StatusCancelled, 0)},
			want:    Counts{Accepted: 1, Cancelled: 1, Delivered: 1, Wrong: 1}, faults: 1,
		},
		"refused, and a fault": {
			entries: []Entry{{Kind: EntryRefused}, {Kind: EntryFault, Text: "oops"}},
			want:    Counts{Refused: 1}, faults: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger()
			for _, e := range c.entries {
				l.Add(e)
			}
			require.Equal(t, c.want, l.Sum(c.ran))
			require.Len(t, l.faults, c.faults, "%v", l.faults)
		})
	}
}

func TestLatencies(t *testing.T) {
	l := NewLedger()
	for n := range 100 {
		l.time(StageRead, epoch, &[]time.Time{at(n + 1)}[0])
	}
	l.time(StageStarted, epoch, nil)
	require.Equal(t, map[Stage]Latency{StageRead: {Count: 100, P50: 50, P90: 90, P99: 99, Max: 100}}, l.Latencies())
}

func TestVerdict(t *testing.T) {
	n := func(i int) *int { return &i }
	for _, c := range []struct {
		kind Kind
		end  End
		good bool
	}{
		{Plain, End{Status: events.StatusCompleted, ExitCode: n(0)}, true},
		{Plain, End{Status: events.StatusCompleted}, false},
		{Plain, End{Status: events.StatusFailed, ExitCode: n(1)}, false},
		{Fork, End{Status: events.StatusCompleted, ExitCode: n(0)}, true},
		{Fail, End{Status: events.StatusFailed, ExitCode: n(7)}, true},
		{Fail, End{Status: events.StatusFailed, ExitCode: n(1)}, false},
		{Crash, End{Status: events.StatusFailed, Signal: "SIGSEGV"}, true},
		{Crash, End{Status: events.StatusFailed, Signal: "SIGKILL"}, false},
		{Flood, End{Status: events.StatusCompleted, Bytes: floodBytes}, true},
		{Flood, End{Status: events.StatusCompleted, Bytes: floodBytes - 1}, false},
		{Output, End{Status: events.StatusCompleted, Bytes: 108_894}, true}, // seq 20000 | wc -c
		{Output, End{Status: events.StatusCompleted}, false},
	} {
		require.Equal(t, c.good, verdict(c.kind, false, c.end) == "", "%s %+v", c.kind, c.end)
	}
}

func TestShares(t *testing.T) {
	s := Scenario{Share: map[Kind]int{Fail: 10, Flood: 3, Output: 20}}
	count := map[Kind]int{}
	for n := range 100 {
		count[s.kind(n)]++
	}
	require.Equal(t, map[Kind]int{Fail: 10, Flood: 3, Output: 20, Plain: 67}, count)
	for parts := 1; parts < 9; parts++ {
		sum := 0
		for n := range parts {
			sum += share(100, parts, n)
		}
		require.Equal(t, 100, sum)
	}
}

func TestCheck(t *testing.T) {
	good := Scenario{Children: 1, Concurrency: 1, Clients: 1}
	require.NoError(t, good.Check())
	for _, s := range []Scenario{
		{}, {Children: 1, Concurrency: 1}, {Children: 1, Clients: 1},
		{Children: 1, Concurrency: 1, Clients: 1, HoldMS: -1},
		{Children: 1, Concurrency: 1, Clients: 1, CancelStorms: -1},
		{Children: 1, Concurrency: 1, Clients: 1, Share: map[Kind]int{Fail: -1}},
		{Children: 1, Concurrency: 1, Clients: 1, Share: map[Kind]int{Fail: 60, Crash: 41}},
	} {
		require.True(t, events.HasCode(s.Check(), events.CodeInvalidRequest), "%+v", s)
	}
}

func TestGood(t *testing.T) {
	good := Report{Scenario: Scenario{Children: 3}, Counts: Counts{Accepted: 2, Refused: 1, Delivered: 2}}
	require.True(t, good.Good())
	for name, spoil := range map[string]func(*Report){
		"lost": func(r *Report) { r.Lost++ }, "duplicated": func(r *Report) { r.Duplicated++ }, "left": func(r *Report) { r.Left++ },
		"wrong": func(r *Report) { r.Wrong++ }, "fault": func(r *Report) { r.Faults = []string{"x"} },
		"not all were spawned": func(r *Report) { r.Accepted--; r.Delivered-- }, "not all were delivered": func(r *Report) { r.Delivered-- },
	} {
		bad := good
		spoil(&bad)
		require.False(t, bad.Good(), name)
	}
}

func TestPictureIsSVG(t *testing.T) {
	full := Report{
		Scenario: Scenario{Children: 2, Concurrency: 1, Clients: 1}, DurationMS: 700,
		Samples: []Sample{{AtMS: 1, Live: 1}, {AtMS: 500, Live: 2, Queued: 3}}, Peak: Sample{Live: 2, Queued: 3},
		stages: map[Stage][]time.Duration{StageAccepted: {time.Millisecond, time.Second}},
	}
	for _, r := range []Report{{}, full} {
		var b bytes.Buffer
		require.NoError(t, r.Picture(&b))
		require.NotContains(t, b.String(), "NaN")
		require.NotContains(t, b.String(), "Inf")
		d := xml.NewDecoder(&b)
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err)
			}
		}
	}
}
