package events

// The second service, hayward-files: reading what subagents wrote, and feeding
// a command's stdin. Each endpoint's subject is FilesSubject(name).
const (
	FilesLogs       = "logs"       // [FileRequest] of stdout or stderr
	FilesTranscript = "transcript" // [FileRequest] of the transcript
	FilesInspect    = "inspect"    // [InspectRequest]
	FilesStdin      = "stdin"      // [StdinRequest]
)

// MaxChunk bounds the bytes of one [FileReply], in bytes before encoding.
const MaxChunk = 512 << 10

// FileRequest reads a part of a subagent's stdout, stderr or transcript. The
// reply is [FileReply].
type FileRequest struct {
	ParentSessionID string `json:"parent_session_id,omitempty"`
	ID              string `json:"id"`
	// Stream is "stdout" (default) or "stderr"; transcript has none.
	Stream string `json:"stream,omitempty"`
	Offset int64  `json:"offset,omitzero"`
	// Tail, when set, starts that many lines before the end and excludes Offset.
	Tail *int `json:"tail,omitzero"`
	// Max bounds the bytes. Default and maximum [MaxChunk].
	Max int `json:"max,omitzero"`
	// Follow waits until there is something behind Offset, the subagent ended, or
	// TimeoutMS (default 10 000, at most 60 000) passed.
	Follow    bool   `json:"follow,omitzero"`
	TimeoutMS *int64 `json:"timeout_ms,omitzero"`
}

// FileReply is a part of a file. Data is base64 in JSON.
type FileReply struct {
	SubagentID string `json:"subagent_id"`
	Data       []byte `json:"data"`
	Offset     int64  `json:"offset"`
	// Next is the offset behind Data.
	Next int64 `json:"next"`
	// Size is the file's size now; EOF is true when the subagent has ended and
	// nothing follows Next.
	Size int64 `json:"size"`
	EOF  bool  `json:"eof"`
}

// InspectRequest asks for everything about one subagent. The reply is
// [InspectReply].
type InspectRequest struct {
	ParentSessionID string `json:"parent_session_id,omitempty"`
	ID              string `json:"id"`
}

// InspectReply is a subagent's snapshot with its record and spec. Environment
// values of the spec are replaced by their lengths.
type InspectReply struct {
	Snapshot Snapshot `json:"snapshot"`
	Record   Record   `json:"record"`
	Spec     *Spec    `json:"spec,omitempty"`
	Dir      string   `json:"run_dir"`
}

// StdinRequest feeds a command that was spawned with stdin "stream". The reply
// is [ControlReply]; it comes once the command's pipe took the bytes. A client
// that neither sends nor asks for 30 s is taken for gone and stdin is closed.
type StdinRequest struct {
	ParentSessionID string `json:"parent_session_id,omitempty"`
	ID              string `json:"id"`
	Offset          int64  `json:"offset"`
	Data            []byte `json:"data,omitempty"`
	EOF             bool   `json:"eof,omitzero"`
}

// The third service, hayward-admin: the coordinator itself.
const (
	AdminStatus   = "status"   // [StatusRequest]
	AdminShutdown = "shutdown" // [ShutdownRequest]
)

// StatusRequest asks how the coordinator is. The reply is [StatusReply].
type StatusRequest struct{}

// StatusReply says how the coordinator is.
type StatusReply struct {
	Version  string `json:"version"`
	PID      int    `json:"pid"`
	UptimeMS int64  `json:"uptime_ms"`
	StateDir string `json:"state_dir"`
	// Counts by state.
	Queued    int `json:"queued"`
	Pending   int `json:"pending"`
	Active    int `json:"active"`
	Completed int `json:"completed"`
	Unread    int `json:"unread"`
	// Limits in force, with where each comes from: name to value, name to origin.
	Limits  map[string]int64  `json:"limits"`
	Origins map[string]string `json:"origins"`
	// AtLimit says what becomes of a spawn without a slot: "queue" or "fail".
	AtLimit string `json:"at_limit,omitempty"`
	// Recovered and Damaged are what the last start found.
	Recovered []string `json:"recovered,omitempty"`
	Damaged   []string `json:"damaged,omitempty"`
	// LateReports counts reports of ended runs that were dropped.
	LateReports int64 `json:"late_reports"`
	// DroppedMessages counts bus messages lost to slow readers. It should be 0.
	DroppedMessages int64 `json:"dropped_messages"`
	// Goroutines counts those of the coordinator's process.
	Goroutines int `json:"goroutines"`
}

// ShutdownRequest ends the coordinator. The reply is [ShutdownReply], sent when
// every child has ended or, with Handover, at once.
type ShutdownRequest struct {
	// Handover leaves the children running for the next coordinator.
	Handover bool `json:"handover,omitzero"`
	// Kill skips the graceful steps.
	Kill bool `json:"kill,omitzero"`
}

// ShutdownReply tells what was ended.
type ShutdownReply struct {
	Ended int `json:"ended"`
	Left  int `json:"left"`
}
