package events

// The second service, hayward-files: reading what subagents wrote, and feeding
// a command's stdin. Each endpoint's subject is FilesSubject(name).
const (
	FilesLogs       = "logs"
	FilesTranscript = "transcript"
	FilesInspect    = "inspect"
	FilesStdin      = "stdin"
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
