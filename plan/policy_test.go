package plan

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestParseFurtherKeys(t *testing.T) {
	p := parse(t, `
fail_fast = true
on_done = ["notify", "{item}"]

[defaults]
prompt_file = "task.md"
type = "explore"
isolation = "none"
on_done = "echo {item}"

[[subagent]]
name = "agent"
command = ["x"]

[[subagent]]
name = "own"
prompt = "text"
type = "command"
command = ["true"]
on_done = ["true"]

[[subagent]]
name = "each"
for_each = ["a b"]
prompt_file = "{item}.md"
`)
	require.True(t, p.FailFast)
	require.Equal(t, []string{"notify", "{item}"}, p.OnDone)
	require.Len(t, p.Digest, 64)
	agent, own, each := p.Subagents[0], p.Subagents[1], p.Subagents[2]
	require.Equal(t, "/plans/task.md", agent.PromptFile)
	require.Equal(t, []string{"sh", "-c", "echo {item}"}, agent.OnDone)
	require.Equal(t, events.Spawn{
		Name: "agent", SubagentType: "explore", Command: []string{"x"}, PromptFile: "/plans/task.md",
		Cwd: "/plans", Isolation: "none", RunInBackground: true,
	}, agent.spawn())
	require.Equal(t, "text", own.Prompt)
	require.Empty(t, own.PromptFile, "a prompt of its own replaces the default file")
	require.Equal(t, []string{"true"}, own.OnDone)
	require.Equal(t, "/plans/a b.md", each.PromptFile)
	require.Equal(t, []string{"sh", "-c", "echo 'a b'"}, each.OnDone)
	require.Empty(t, each.Command, "a type of its own may do without a command")

	for text, want := range map[string]bool{"": false, "fail_fast = false": false, "wait_all = true": false, "wait_all = false": false, "fail_fast = true": true} {
		require.Equal(t, want, parse(t, text+"\n[[subagent]]\nname = \"a\"\nshell = \"true\"\n").FailFast, text)
	}
}

func TestFailFast(t *testing.T) {
	for _, c := range []struct {
		about      string
		behaviors  map[string]behavior
		interrupts int
		want       map[string]string
		code       int
		said       string
	}{
		{
			about:     "the rest is cancelled or skipped",
			behaviors: map[string]behavior{"bad": {lasts: time.Second, exit: 1}, "long": {never: true, grace: time.Second}},
			want:      map[string]string{"bad": "failed", "long": "cancelled(fail_fast)", "child": "skipped(dependency)", "later": "skipped(fail_fast)"},
			code:      ExitFailed, said: "bad failed: fail_fast ends the run and 1 subagent in flight",
		},
		{
			about: "a refusal is a failure",
			behaviors: map[string]behavior{
				"bad": {refusals: []error{
					events.Errorf(events.CodeBusy, events.LayerCoordinator, "later"),
					events.Errorf(events.CodeUnknownType, events.LayerGate, "no"),
				}},
				"long": {never: true},
			},
			want: map[string]string{"bad": "failed(start)", "long": "cancelled(fail_fast)", "child": "skipped(dependency)", "later": "skipped(fail_fast)"},
			code: ExitFailed, said: "bad failed: fail_fast ends the run and 1 subagent in flight",
		},
		{
			about:     "what ends well meanwhile has completed",
			behaviors: map[string]behavior{"bad": {lasts: time.Second, exit: 1}, "long": {lasts: time.Second + time.Millisecond, stubborn: true}},
			want:      map[string]string{"bad": "failed", "long": "completed", "child": "skipped(dependency)", "later": "skipped(fail_fast)"},
			code:      ExitFailed,
		},
		{
			about:      "an interrupt is told from it, and the second kills",
			behaviors:  map[string]behavior{"bad": {lasts: time.Second, exit: 1}, "long": {never: true, stubborn: true}},
			interrupts: 2,
			want:       map[string]string{"bad": "failed", "long": "cancelled(fail_fast)", "child": "skipped(dependency)", "later": "skipped(fail_fast)"},
			code:       ExitInterrupted, said: "killing 1 subagent",
		},
	} {
		t.Run(c.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(c.behaviors)
				interrupts := make(chan struct{}, 2)
				for i := range c.interrupts {
					time.AfterFunc(time.Duration(i+2)*time.Second, func() { interrupts <- struct{}{} })
				}
				seen := &recorder{}
				s, err := parse(t, "fail_fast = true\n"+entries("bad", "long", "child: bad", "later: long")).
					Run(t.Context(), f, Options{Observer: seen, Interrupt: interrupts})
				require.NoError(t, err)
				require.Equal(t, c.want, statuses(s))
				require.Equal(t, c.code, s.exitCode(err))
				if c.said != "" {
					require.Contains(t, seen.said, c.said)
				}
				for _, cancel := range f.cancels {
					require.Nil(t, cancel.Validate())
					require.Equal(t, events.ReasonFailFast, cancel.Reason)
				}
			})
		})
	}
}

// TestCancelledIsNoFailure: somebody who cancels one subagent does not end a run
// that fails fast.
func TestCancelledIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {never: true}, "b": {lasts: time.Hour}})
		time.AfterFunc(time.Minute, func() {
			c := f.child("a")
			f.mu.Lock()
			defer f.mu.Unlock()
			f.endIn(c, 0, events.StatusCancelled, events.ReasonUser)
		})
		s, err := parse(t, "fail_fast = true\n"+entries("a", "b")).Run(t.Context(), f, Options{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": "cancelled(user)", "b": "completed"}, statuses(s))
	})
}
