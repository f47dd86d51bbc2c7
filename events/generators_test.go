package events

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"pgregory.net/rapid"
)

// Generators of valid requests, and of any wire type.

func genID() *rapid.Generator[string] {
	return rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
}

func genScope() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z0-9_.:-]{1,128}`) }

func genRef() *rapid.Generator[string] {
	return rapid.OneOf(genID(), rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_.-]{0,30}`))
}

func genPath() *rapid.Generator[string] {
	return rapid.StringMatching(`(/[a-zA-Z0-9é ._-]{1,12}){1,5}`)
}

func maybe[T any](g *rapid.Generator[T]) *rapid.Generator[T] {
	var zero T
	return rapid.OneOf(rapid.Just(zero), g)
}

func genMS(most int64) *rapid.Generator[*int64] { return rapid.Ptr(rapid.Int64Range(0, most), true) }

func genWord() *rapid.Generator[string] { return rapid.StringMatching(`[ -~é]{0,60}`) }

func genLabels() *rapid.Generator[map[string]string] {
	return rapid.MapOfN(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_./-]{0,20}`), rapid.StringN(0, 60, 256), 0, 5)
}

func genSpawn() *rapid.Generator[Spawn] {
	return rapid.Custom(func(t *rapid.T) Spawn {
		s := Spawn{
			ParentSessionID:   genScope().Draw(t, "session"),
			ID:                maybe(genID()).Draw(t, "id"),
			Name:              maybe(rapid.StringMatching(`[A-Za-z][A-Za-z0-9_.-]{0,30}`)).Draw(t, "name"),
			Description:       rapid.StringN(0, 100, MaxDescription).Draw(t, "description"),
			SubagentType:      maybe(rapid.Just("command")).Draw(t, "type"),
			ParentPromptID:    maybe(genScope()).Draw(t, "prompt id"),
			ResumeFrom:        maybe(genRef()).Draw(t, "resume"),
			MaxContextPercent: rapid.IntRange(0, 100).Draw(t, "percent"),
			Cwd:               maybe(genPath()).Draw(t, "cwd"),
			Workspace:         maybe(genPath()).Draw(t, "workspace"),
			AddDirs:           rapid.SliceOfN(genPath(), 0, 4).Draw(t, "add dirs"),
			Isolation:         rapid.SampledFrom([]string{"", IsolationNone, IsolationWorktree, "None", "Worktree", "work_tree", "work-tree"}).Draw(t, "isolation"),
			Sandbox:           genWord().Draw(t, "sandbox"),
			SandboxBestEffort: rapid.Bool().Draw(t, "best effort"),
			Model:             genWord().Draw(t, "model"),
			Persona:           genWord().Draw(t, "persona"),
			CapabilityMode:    genWord().Draw(t, "mode"),
			RunInBackground:   rapid.Bool().Draw(t, "background"),
			AwaitBudgetMS:     genMS(MaxDurationMS).Draw(t, "budget"),
			MaxRuntimeMS:      genMS(MaxDurationMS).Draw(t, "runtime"),
			IdleTimeoutMS:     genMS(MaxDurationMS).Draw(t, "idle"),
			MaxMemoryBytes:    rapid.Ptr(rapid.Int64Range(MinMemoryBytes, MaxMemoryBytes), true).Draw(t, "memory"),
			Labels:            genLabels().Draw(t, "labels"),
			Env:               rapid.MapOfN(rapid.StringMatching(`[A-CF-Z][A-Z0-9_]{0,10}`).Filter(func(k string) bool { return !loaderVariable(k) }), genWord(), 0, 5).Draw(t, "env"),
			Inputs:            rapid.MapOfN(rapid.StringMatching(`[a-z_][a-z0-9_]{0,20}`), genRef(), 0, 4).Draw(t, "inputs"),
			OutputSchema:      genSchema().Draw(t, "schema"),
		}
		switch rapid.IntRange(0, 3).Draw(t, "stdin") {
		case 0:
			s.Prompt, s.Stdin = rapid.String().Draw(t, "prompt"), StdinPrompt
		case 1:
			s.PromptFile = genPath().Draw(t, "prompt file")
		case 2:
			s.Stdin = StdinStream
		}
		if rapid.Bool().Draw(t, "command") {
			s.Command = append([]string{"run"}, rapid.SliceOfN(genWord(), 0, 5).Draw(t, "argv")...)
		}
		return s
	})
}

func genSchema() *rapid.Generator[json.RawMessage] {
	return rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`true`), json.RawMessage(`{"type":"object","required":["a"]}`)})
}

func genQuery() *rapid.Generator[Query] {
	return rapid.Custom(func(t *rapid.T) Query {
		q := Query{
			ParentSessionID: maybe(genScope()).Draw(t, "session"),
			IDs:             rapid.SliceOfN(genRef(), 1, 8).Draw(t, "ids"),
			Block:           rapid.Bool().Draw(t, "block"),
			Mode:            rapid.SampledFrom([]QueryMode{"", QueryAll, QueryAny, QueryCount}).Draw(t, "mode"),
			TimeoutMS:       genMS(MaxQueryMS).Draw(t, "timeout"),
			MarkRead:        rapid.Bool().Draw(t, "mark"),
		}
		if q.Mode == QueryCount {
			q.Count = rapid.IntRange(1, len(q.IDs)).Draw(t, "count")
		}
		return q
	})
}

func genCancel() *rapid.Generator[Cancel] {
	return rapid.Custom(func(t *rapid.T) Cancel {
		c := Cancel{
			ParentSessionID: genScope().Draw(t, "session"),
			Kill:            rapid.Bool().Draw(t, "kill"),
			Reason:          rapid.SampledFrom([]Reason{"", ReasonUser, ReasonParent, ReasonPrompt, ReasonSession, ReasonShutdown, ReasonDependency, ReasonFailFast}).Draw(t, "reason"),
			Actor:           rapid.StringN(0, 60, MaxActor).Draw(t, "actor"),
			TimeoutMS:       genMS(MaxQueryMS).Draw(t, "timeout"),
			DryRun:          rapid.Bool().Draw(t, "dry"),
		}
		switch rapid.IntRange(0, 3).Draw(t, "target") {
		case 0:
			c.Target.IDs = rapid.SliceOfN(genRef(), 1, 5).Draw(t, "ids")
		case 1:
			c.Target.ParentPromptID = genScope().Draw(t, "prompt")
		case 2:
			c.Target.Session = true
		case 3:
			c.Target.Label = rapid.MapOfN(rapid.StringMatching(`[a-z]{1,5}`), rapid.StringN(0, 20, 256), 1, 4).Draw(t, "label")
		}
		return c
	})
}

func genListActive() *rapid.Generator[ListActive] {
	return rapid.Custom(func(t *rapid.T) ListActive {
		return ListActive{
			ParentSessionID: maybe(genScope()).Draw(t, "session"),
			IncludeFinished: rapid.Bool().Draw(t, "finished"),
			SinceMS:         genMS(MaxDurationMS).Draw(t, "since"),
			After:           maybe(genID()).Draw(t, "after"),
			Max:             rapid.IntRange(0, MaxPage).Draw(t, "max"),
		}
	})
}

func genCompletions() *rapid.Generator[Completions] {
	return rapid.Custom(func(t *rapid.T) Completions {
		dedupe := rapid.Custom(func(t *rapid.T) string {
			return DedupeID(genID().Draw(t, "id"), rapid.IntRange(0, 1000).Draw(t, "run"))
		})
		return Completions{
			ParentSessionID: genScope().Draw(t, "session"),
			SuppressIDs:     rapid.SliceOfN(genID(), 0, 4).Draw(t, "suppress"),
			AckIDs:          rapid.SliceOfN(rapid.OneOf(genID(), dedupe), 0, 4).Draw(t, "ack"),
			LeaseMS:         genMS(MaxLeaseMS).Draw(t, "lease"),
			Peek:            rapid.Bool().Draw(t, "peek"),
			Max:             rapid.Ptr(rapid.IntRange(0, MaxPage), true).Draw(t, "max"),
		}
	})
}

func genOutstanding() *rapid.Generator[Outstanding] {
	return rapid.Custom(func(t *rapid.T) Outstanding {
		return Outstanding{ParentSessionID: genScope().Draw(t, "session"), ParentPromptID: genScope().Draw(t, "prompt")}
	})
}

// genRequest draws a valid request of any kind.
func genRequest() *rapid.Generator[SubagentEvent] {
	return rapid.Custom(func(t *rapid.T) SubagentEvent {
		switch k := rapid.SampledFrom(Kinds).Draw(t, "kind"); k {
		case KindSpawn:
			return genSpawn().Draw(t, "spawn")
		case KindQuery:
			return genQuery().Draw(t, "query")
		case KindCancel:
			return genCancel().Draw(t, "cancel")
		case KindListActive:
			return genListActive().Draw(t, "list_active")
		case KindCompletions:
			return genCompletions().Draw(t, "completions")
		case KindOutstanding:
			return genOutstanding().Draw(t, "outstanding")
		default:
			panic(fmt.Sprintf("no generator for %s", k))
		}
	})
}

func oneOf[T any](values ...T) *rapid.Generator[any] { return rapid.SampledFrom(values).AsAny() }

// genWire draws any value of wire type T with text in UTF-8: what is free is
// arbitrary, what is enumerated is one of its values.
func genWire[T any]() *rapid.Generator[T] {
	at := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	})
	return rapid.MakeCustom[T](rapid.MakeConfig{
		Types: map[reflect.Type]*rapid.Generator[any]{
			reflect.TypeFor[time.Time]():       at.AsAny(),
			reflect.TypeFor[json.RawMessage](): genSchema().AsAny(),
			reflect.TypeFor[State]():           oneOf(StateQueued, StatePending, StateActive, StateCompleted),
			reflect.TypeFor[Status]():          oneOf(StatusInitializing, StatusRunning, StatusCompleted, StatusFailed, StatusCancelled),
			reflect.TypeFor[Reason]():          oneOf("", ReasonExit, ReasonDeadline, ReasonDependency),
			reflect.TypeFor[Code]():            oneOf(CodeInternal, CodeBusy, CodeUnreachable),
			reflect.TypeFor[ErrorLayer]():      oneOf(LayerGate, LayerPermission, LayerWorkspace, LayerSandbox, LayerCoordinator),
			reflect.TypeFor[CancelOutcome]():   oneOf(CancelCancelled, CancelAlreadyFinished, CancelNotFound, CancelDraining, CancelWouldCancel),
			reflect.TypeFor[StopReason]():      oneOf(StopEnd, StopMaxTurns, StopCut),
			reflect.TypeFor[DenialOrigin]():    oneOf(DenialNoApprover, DenialRule, DenialUnknown),
			reflect.TypeFor[CwdFrom]():         oneOf(CwdFromWorktree, CwdFromSource, CwdFromRequest),
			reflect.TypeFor[LayerState]():      oneOf(LayerEnforced, LayerNotRequested, LayerUnavailable),
			reflect.TypeFor[Network]():         oneOf("", NetworkOpen, NetworkLoopback, NetworkNone),
			reflect.TypeFor[TreeKill]():        oneOf("", TreeKillPIDNamespace, TreeKillCgroup, TreeKillSweep),
		},
		Kinds: map[reflect.Kind]*rapid.Generator[any]{
			reflect.String: rapid.StringN(0, 12, 40).AsAny(),
		},
	})
}
