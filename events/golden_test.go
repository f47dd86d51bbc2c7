package events

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden pins the JSON that other programs read. Members may be added; one
// that is renamed, dropped or retyped breaks them.
func TestGolden(t *testing.T) {
	code, success := 3, false
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 3, 4, s, 0, time.UTC) }
	started, ended := at(6), at(8)
	failure := Errorf(CodeChildCrashed, LayerCoordinator, "run %s: the supervisor ended without a report", someID).
		WithDetail("exit", "unknown").WithRemedy("resume it")
	full := Snapshot{
		SubagentID: someID, Run: 1, Name: "vet", Description: "Vet the module", SubagentType: "command",
		ParentSessionID: "s", ParentPromptID: "p", ParentID: someID, ResumedFrom: someID, ContextSource: "new",
		Labels: map[string]string{"kind": "audit"}, CommandLine: "go vet ./...", Cwd: "/w", Workspace: "/w",
		Isolation: IsolationNone, Background: true,
		Boundaries: &Boundaries{
			ContextSource: ContextResumed, Identity: Identity{Type: "command", Persona: "terse", Model: "m", Pinned: true},
			ResumeSource: &ResumeSource{
				Identity:    ResumeIdentity{SubagentID: someID, Type: "command", Persona: "terse", ModelID: "m"},
				Directories: ResumeDirectories{ChildCwd: "/w", WorktreePath: "/t"},
				Session:     ResumeSession{ChildSessionID: "c", Items: 3, EstimatedTokens: 80, Window: 100},
				Snapshot:    ResumeSnapshot{SnapshotRef: "refs/hayward/subagents/" + someID + "/tree"},
			},
			Cwd: EffectiveCwd{Path: "/w", From: CwdFromSource}, Isolation: IsolationNone,
			Sandbox: SandboxBoundary{Requested: "workspace", Applied: "workspace"},
		},
		State: StateCompleted, Status: StatusFailed, Success: &success, Reason: ReasonExit, Actor: "ci", ExplicitKill: true, Error: failure,
		CreatedAt: at(5), StartedAt: &started, EndedAt: &ended, DurationMS: 2000, ElapsedMS: 3000,
		ExitCode: &code, Signal: "SIGTERM", Exit: &Exit{Code: &code, Signal: "SIGTERM", UserMS: 1, SystemMS: 2, MaxRSSKiB: 3},
		Output:     Output{Text: "hi\n", Encoding: "base64", Bytes: 3, Truncated: true, Ref: someID + "/stdout.log", Path: "/s/stdout.log"},
		StderrTail: "oh\n",
		Sandbox: &SandboxReport{
			Requested: "Workspace", Profile: "workspace", Active: true,
			Layers:  map[string]Layer{"landlock": {State: LayerEnforced, Detail: "ABI 7"}},
			Network: NetworkOpen, TreeKill: TreeKillPIDNamespace, Writable: []string{"/w"}, Gaps: []string{"host_sockets"}, PlanHash: "00ff",
		},
		Process:  &Process{PID: 7, StartTime: 8, BootID: "b", PIDNamespace: 9, CgroupPath: "/c"},
		Progress: &Progress{At: at(7), LastLine: "hi", StdoutBytes: 3, StderrBytes: 3, Processes: 2},
		Read:     true,
	}
	for name, v := range map[string]any{
		"snapshot":          full,
		"snapshot_accepted": SpawnReply{Snapshot: Snapshot{SubagentID: someID, Run: 1, SubagentType: "command", ParentSessionID: "s", ContextSource: "new", Cwd: "/w", Workspace: "/w", Isolation: IsolationNone, State: StateQueued, Status: StatusInitializing, CreatedAt: at(5)}, Accepted: true, Backgrounded: true},
		"error":             failure,
		"completion":        Completion{Snapshot: Snapshot{SubagentID: someID, Run: 1, CreatedAt: at(5)}, DedupeID: DedupeID(someID, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Marshal(v)
			require.NoError(t, err)
			var indented bytes.Buffer
			require.NoError(t, json.Indent(&indented, b, "", "  "))
			indented.WriteByte('\n')
			file := filepath.Join("testdata", name+".json")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, indented.Bytes(), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), indented.String())
		})
	}
}
