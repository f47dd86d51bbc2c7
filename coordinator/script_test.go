package coordinator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/hayward-dev/hayward/events"
)

// TestScripts runs the interaction scripts in testdata. A script is a list of
// commands, each with the effects that it has; see testdata/README.md. Rewrite
// them with -rewrite and read what changed.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var s *script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "world" {
				s = &script{tickets: map[*ticket]string{}}
				s.w = newWorld(t, s.config(t, d))
				return ""
			}
			return s.run(t, d)
		})
	})
}

// script is the world of one script and the names that it uses.
type script struct {
	w       *world
	names   []string
	tickets map[*ticket]string
}

func (s *script) config(t *testing.T, d *datadriven.TestData) Config {
	var cfg Config
	d.MaybeScanArgs(t, "per-session", &cfg.Limits.PerSession)
	d.MaybeScanArgs(t, "total", &cfg.Limits.Total)
	d.MaybeScanArgs(t, "queue", &cfg.Limits.QueueLength)
	d.MaybeScanArgs(t, "depth", &cfg.Limits.Depth)
	if v := s.word(t, d, "type"); v != "" {
		name, most, _ := strings.Cut(v, ":")
		n, err := strconv.Atoi(most)
		if err != nil {
			d.Fatalf(t, "type: %v", err)
		}
		cfg.Limits.PerType = map[string]int{name: n}
	}
	cfg.Limits.AtLimit = AtLimit(s.word(t, d, "at-limit"))
	d.MaybeScanArgs(t, "keep", &cfg.Retention.PerSession)
	cfg.Retention.Age = duration(t, d, "age")
	cfg.AwaitBudget = duration(t, d, "budget")
	return cfg
}

func duration(t *testing.T, d *datadriven.TestData, key string) time.Duration {
	var text string
	if !d.MaybeScanArgs(t, key, &text) {
		return 0
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%s: %v", key, err)
	}
	return v
}

// run carries out one command and returns the effects as text.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	w := s.w
	var out []Effect
	switch d.Cmd {
	case "spawn", "query", "cancel", "list", "completions", "outstanding":
		for _, e := range s.events(t, d) {
			caller := Caller{Principal: "client"}
			if by := s.word(t, d, "by"); by != "" {
				caller = Caller{Principal: s.id(by), Session: w.state.byID[s.id(by)].rec.ParentSessionID}
			}
			as := s.word(t, d, "as")
			if as == "" {
				as = d.Cmd
			}
			if spawn, ok := e.(events.Spawn); ok && s.word(t, d, "as") == "" {
				as += " " + shorten(spawn.ID, s.names)
			}
			w.requestAs(as, caller, e)
			out = append(out, w.effects...)
		}
	case "shutdown":
		to := &ticket{"shutdown"}
		w.answers[to] = nil
		out = w.apply(ShutDown{events.ShutdownRequest{Kill: d.HasArg("kill"), Handover: d.HasArg("handover")}, to})
	case "shutdown-expired":
		out = w.apply(ShutdownExpired{})
	case "remove":
		w.forced = w.forced || d.HasArg("force")
		to := &ticket{"remove"}
		w.answers[to] = nil
		out = w.apply(Remove{events.RemoveRequest{
			ParentSessionID: s.word(t, d, "session"), IDs: s.refs(d), Force: d.HasArg("force"), DryRun: d.HasArg("dry-run"),
		}, to})
	case "prune":
		to := &ticket{"prune"}
		w.answers[to] = nil
		r := events.PruneRequest{ParentSessionID: s.word(t, d, "session"), OlderThanMS: s.ms(t, d, "older"), DryRun: d.HasArg("dry-run")}
		if d.HasArg("keep") {
			r.Keep = new(int)
			d.ScanArgs(t, "keep", r.Keep)
		}
		out = w.apply(Prune{r, to})
	case "lookup":
		to := &ticket{"lookup"}
		out = w.apply(Lookup{s.word(t, d, "session"), s.ref(d.CmdArgs[0].Key), to})
	case "ok":
		for ids := s.targets(d, w.order); len(ids) > 0; ids = slices.Clone(w.order) {
			for _, id := range ids {
				out = append(out, w.ack(id)...)
			}
			if len(s.plain(d)) > 0 {
				break
			}
		}
	case "fail":
		for _, id := range s.targets(d, slices.Clone(w.order)) {
			out = append(out, w.fail(id, events.Code(s.word(t, d, "code")))...)
		}
	case "forked":
		for _, id := range s.targets(d, nil) {
			out = append(out, w.fork(id)...)
		}
	case "started":
		for _, id := range s.targets(d, nil) {
			out = append(out, w.apply(Started{ID: id, Run: 1, Report: events.SandboxReport{Active: true}})...)
		}
	case "exited":
		to := &ticket{"exited"}
		w.answers[to] = nil
		out = w.apply(Exited{ID: s.id(d.CmdArgs[0].Key), Run: 1, Responder: to})
	case "run":
		for _, id := range s.targets(d, nil) {
			w.run(id)
		}
		return ""
	case "ended":
		end := events.End{Status: events.StatusCompleted}
		if v := s.word(t, d, "status"); v != "" {
			end.Status = events.Status(v)
		}
		end.Reason = events.Reason(s.word(t, d, "reason"))
		code := 0
		end.Exit = &events.Exit{Code: &code}
		if d.HasArg("noexit") {
			end.Exit = nil
		}
		end.NotRun = d.HasArg("not-run")
		if d.HasArg("tokens") {
			end.Usage = &events.Usage{}
			d.ScanArgs(t, "tokens", &end.Usage.OutputTokens)
		}
		for _, id := range s.targets(d, nil) {
			out = append(out, w.end(id, end)...)
		}
	case "gone":
		for to := range w.answers {
			if to.name == "spawn "+d.CmdArgs[0].Key {
				out = w.apply(Abandoned{to})
			}
		}
	case "ack":
		by := s.word(t, d, "by")
		if by != "" {
			by = s.id(by)
		}
		out = w.apply(Ack{Token: d.CmdArgs[0].Key, By: by})
	case "advance":
		v, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		out = w.advance(v)
	case "restart":
		out = w.boot()
	case "stats":
		st := w.state.stats()
		return fmt.Sprintf("queued=%d pending=%d active=%d completed=%d unread=%d stopping=%d unsettled=%d waiting=%d late=%d late_acks=%d\n",
			st.Queued, st.Pending, st.Active, st.Completed, st.Unread, st.Stopping, st.Unsettled, st.Waiting, st.LateReports, st.LateAcks)
	default:
		d.Fatalf(t, "there is no command %q", d.Cmd)
	}
	return s.print(out)
}

// events builds the requests of one command; a spawn may make several.
func (s *script) events(t *testing.T, d *datadriven.TestData) []events.SubagentEvent {
	session := s.word(t, d, "session")
	switch d.Cmd {
	case "spawn":
		if session == "" {
			session = "s"
		}
		var list []events.SubagentEvent
		for _, name := range s.plain(d) {
			e := spawnOf(name, session)
			s.id(name)
			e.ParentPromptID, e.Name = s.word(t, d, "prompt"), s.word(t, d, "name")
			e.RunInBackground, e.Reopen = d.HasArg("bg"), d.HasArg("reopen")
			if v := s.word(t, d, "may"); v != "" {
				e.MaySpawn = strings.Split(v, "+")
			}
			e.Labels = s.labels(t, d)
			if v := s.word(t, d, "type"); v != "" {
				e.SubagentType = v
			}
			e.AwaitBudgetMS, e.MaxRuntimeMS = s.ms(t, d, "budget"), s.ms(t, d, "max-runtime")
			if in := s.word(t, d, "input"); in != "" {
				e.Inputs = map[string]string{"in": s.ref(in)}
			}
			list = append(list, e)
		}
		return list
	case "query":
		q := events.Query{ParentSessionID: session, IDs: s.refs(d), Block: d.HasArg("block"), MarkRead: d.HasArg("mark-read")}
		q.Mode = events.QueryMode(s.word(t, d, "mode"))
		d.MaybeScanArgs(t, "count", &q.Count)
		q.TimeoutMS = s.ms(t, d, "timeout")
		return []events.SubagentEvent{q}
	case "cancel":
		c := events.Cancel{ParentSessionID: session, Kill: d.HasArg("kill"), DryRun: d.HasArg("dry-run")}
		c.Target = events.CancelTarget{IDs: s.refs(d), ParentPromptID: s.word(t, d, "prompt"), Session: d.HasArg("whole-session"), Label: s.labels(t, d)}
		c.Actor, c.Reason = s.word(t, d, "actor"), events.Reason(s.word(t, d, "reason"))
		c.TimeoutMS = s.ms(t, d, "timeout")
		return []events.SubagentEvent{c}
	case "list":
		l := events.ListActive{ParentSessionID: session, IncludeFinished: d.HasArg("finished"), SinceMS: s.ms(t, d, "since")}
		if after := s.word(t, d, "after"); after != "" {
			l.After = s.id(after)
		}
		d.MaybeScanArgs(t, "max", &l.Max)
		return []events.SubagentEvent{l}
	case "completions":
		c := events.Completions{ParentSessionID: session, Peek: d.HasArg("peek"), LeaseMS: s.ms(t, d, "lease")}
		for _, key := range []struct {
			name string
			list *[]string
		}{{"suppress", &c.SuppressIDs}, {"ack", &c.AckIDs}} {
			if arg, ok := d.Arg(key.name); ok {
				for _, v := range arg.Vals {
					base, run, dedupe := strings.Cut(v, ".")
					ref := s.id(base)
					if dedupe {
						ref += "." + run
					}
					*key.list = append(*key.list, ref)
				}
			}
		}
		var most int
		if d.MaybeScanArgs(t, "max", &most) {
			c.Max = &most
		}
		return []events.SubagentEvent{c}
	}
	return []events.SubagentEvent{events.Outstanding{ParentSessionID: session, ParentPromptID: s.word(t, d, "prompt")}}
}

func (s *script) word(t *testing.T, d *datadriven.TestData, key string) (v string) {
	d.MaybeScanArgs(t, key, &v)
	return v
}

func (s *script) ms(t *testing.T, d *datadriven.TestData, key string) *int64 {
	if !d.HasArg(key) {
		return nil
	}
	v := duration(t, d, key).Milliseconds()
	return &v
}

func (s *script) labels(t *testing.T, d *datadriven.TestData) map[string]string {
	v := s.word(t, d, "label")
	if v == "" {
		return nil
	}
	key, value, _ := strings.Cut(v, ":")
	return map[string]string{key: value}
}

// flags are the arguments without a value that are no names.
var flags = []string{"bg", "block", "mark-read", "kill", "dry-run", "whole-session", "finished", "peek", "handover", "noexit", "not-run", "force", "reopen", "lost"}

func (s *script) plain(d *datadriven.TestData) (names []string) {
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 && !slices.Contains(flags, a.Key) {
			names = append(names, a.Key)
		}
	}
	return names
}

// id is the id of a name, which is noted for the output.
func (s *script) id(name string) string {
	if !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
	return idOf(name)
}

// ref is the id of a subagent that the script made, or the text itself. A text
// that begins with "..." is the ending of such an id.
func (s *script) ref(text string) string {
	if slices.Contains(s.names, text) {
		return idOf(text)
	}
	if name, ok := strings.CutPrefix(text, "..."); ok {
		return idOf(name)[30:]
	}
	return text
}

func (s *script) refs(d *datadriven.TestData) (refs []string) {
	for _, a := range s.plain(d) {
		refs = append(refs, s.ref(a))
	}
	return refs
}

func (s *script) targets(d *datadriven.TestData, all []string) (ids []string) {
	for _, a := range s.plain(d) {
		ids = append(ids, s.id(a))
	}
	if len(ids) == 0 {
		return slices.Clone(all)
	}
	return ids
}
