package events

// Sizes, in bytes unless said otherwise.
const (
	// MaxPayload is the server's limit for one message.
	MaxPayload = 8 << 20
	// MaxMessage is the limit for messages of ours.
	MaxMessage = 768 << 10
	// MaxPrompt is the longest inline prompt; a longer one goes into a file.
	MaxPrompt = 256 << 10
	// MaxReplyOutput bounds output in a reply: its head and tail parts.
	MaxReplyOutput   = 32 << 10
	ReplyOutputHead  = 8 << 10
	ReplyOutputTail  = 24 << 10
	MaxRecordOutput  = 4 << 10
	RecordOutputHead = 1 << 10
	RecordOutputTail = 3 << 10
	MaxStderrTail    = 4 << 10
	MaxItemText      = 16 << 10
	MaxStdinChunk    = 64 << 10
	MaxCommandLine   = 256
	MaxLastLine      = 200
	MaxPage          = 100
	MaxQueryIDs      = 100
	MaxLabels        = 64
	MaxInputs        = 64
	MaxEnv           = 256
	MaxAddDirs       = 64
	MaxArgv          = 4096
	MaxArgvBytes     = 256 << 10
	MaxPathBytes     = 4095
	MaxDescription   = 1024
	MaxWord          = 256
	MaxSchemaDepth   = 64
	MaxActor         = 256
	DefaultQueryMS   = 30_000
	MaxQueryMS       = 600_000
	DefaultCancelMS  = 30_000
	DefaultLeaseMS   = 5_000
	MaxLeaseMS       = 3_600_000
	DefaultFollowMS  = 10_000
	MaxFollowMS      = 60_000
)
