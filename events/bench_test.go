package events

import (
	"testing"
	"time"
)

// The codec is on the path of every request.

func BenchmarkDecodeSpawn(b *testing.B) {
	body := []byte(`{"parent_session_id":"s","command":["go","vet","./..."],"cwd":"/srv/repo","env":{"PATH":"/usr/bin","HOME":"/root"},"labels":{"plan":"audit"},"run_in_background":true}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRequest(KindSpawn, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalRecord(b *testing.B) {
	now := time.Now()
	r := Record{
		Schema: RecordSchema, ID: someID, Run: 1, SubagentType: "command", ParentSessionID: "s",
		CommandLine: "go vet ./...", Cwd: "/srv/repo", Workspace: "/srv/repo", Isolation: IsolationNone,
		State: StateActive, Status: StatusRunning, CreatedAt: now, PendingAt: &now, StartedAt: &now,
		Process: &Process{PID: 7, StartTime: 8, BootID: someID, PIDNamespace: 9},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := MarshalRecord(r); err != nil {
			b.Fatal(err)
		}
	}
}
