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
	MaxReplyOutput  = 32 << 10
	ReplyOutputHead = 8 << 10  // the part of MaxReplyOutput from the beginning
	ReplyOutputTail = 24 << 10 // the part of MaxReplyOutput from the end
	// MaxRecordOutput bounds output in a record: its head and tail parts.
	MaxRecordOutput  = 4 << 10
	RecordOutputHead = 1 << 10 // the part of MaxRecordOutput from the beginning
	RecordOutputTail = 3 << 10 // the part of MaxRecordOutput from the end

	MaxStderrTail  = 4 << 10  // the end of stderr in reports and replies
	MaxItemText    = 16 << 10 // text of one item on the bus
	MaxStdinChunk  = 64 << 10 // data of one stdin message
	MaxCommandLine = 256      // argv for people
	MaxLastLine    = 200      // the last line of output in a progress

	MaxPage        = 100       // entries of one page of a list
	MaxQueryIDs    = 100       // ids of one query or cancel
	MaxAckIDs      = 1000      // entries of ack_ids and of suppress_ids
	MaxLabels      = 64        // labels of one subagent
	MaxInputs      = 64        // inputs of one subagent
	MaxEnv         = 256       // variables of one spawn
	MaxAddDirs     = 64        // further writable directories of one spawn
	MaxDeny        = 64        // further entries to deny of one spawn
	MaxMaySpawn    = 64        // types that one subagent may spawn by name
	MaxArgv        = 4096      // arguments of one command
	MaxArgvBytes   = 256 << 10 // all arguments of one command
	MaxPathBytes   = 4095      // one path
	MaxDescription = 1024      // a description
	MaxWord        = 256       // the name of a type, profile, model, persona or mode
	MaxActor       = 256       // an actor
	MaxSchemaDepth = 64        // levels of nesting in an output_schema

	MaxOutputSchema = 64 << 10 // an output_schema
	MaxStructured   = 16 << 10 // a structured result in a record and in replies
)

// Durations, in milliseconds.
const (
	DefaultQueryMS  = 30_000               // a blocking query
	MaxQueryMS      = 600_000              // a blocking query, and a cancel
	DefaultCancelMS = 30_000               // a cancel
	DefaultLeaseMS  = 5_000                // a lease of completions
	MaxLeaseMS      = 3_600_000            // a lease of completions
	DefaultFollowMS = 10_000               // a read that follows a file
	MaxFollowMS     = 60_000               // a read that follows a file
	MinMemoryBytes  = 16 << 20             // the least memory limit: a supervisor needs some of it
	MaxMemoryBytes  = 1 << 50              // the greatest memory limit
	MaxDurationMS   = 366 * 24 * 3_600_000 // any other duration in a request: a leap year
)
