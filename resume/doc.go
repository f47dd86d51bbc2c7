// Package resume decides whether a finished subagent can be gone on from, and
// copies what there is of it.
//
// # Gates
//
// [Admit] asks, in this order, and refuses at the first no with a code of its own:
// the source is there and has ended; type; persona; model; transcript; how much of
// the model's context window it takes; the agent's own session; working tree or
// directory. It is pure: what has to be looked for is an [Evidence].
//
// # What is copied
//
// The conversation, as the transcript and the agent's own session have it, and the
// tool state. Plan state, plan-mode state and signals belong to the run that ended
// and are not. Where the directory is another one, paths in the conversation are
// rewritten. [Copy] leaves all of it or nothing, never writes to the source, and
// takes no more memory than the longest line needs, which is bounded.
//
// # Ownership
//
// The source has ended, so nobody writes it; several resumes may read it at once,
// and each has its copy. What a subagent wrote is hostile: files are opened by name
// below a directory, none but regular ones, and lines have a greatest length.
package resume
