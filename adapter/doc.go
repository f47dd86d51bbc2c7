// Package adapter runs agent CLIs, claude and codex, as subagents.
//
// It has two sides that meet in one process tree. The side of the coordinator,
// [New], turns what a spawn means into a command: argv, environment, the files of
// a private home, and what goes to stdin. The side of hayward-child, [Reader],
// reads the CLI's stdout, a stream of JSON lines, into items of the transcript and
// a result.
//
// Both are pure: no process, no file and no network is touched here. The package
// is linked into hayward-child, so it depends on nothing that is not there anyway.
//
// # The command
//
// The prompt goes to stdin and long texts into files of the home, so that no list
// of processes shows them and no limit of argv cuts them. The CLI gets the
// address and the token of a relay that knows it, never a key. Its own permission
// prompts and its own sandbox are switched off only where Hayward's sandbox is
// active, or where the definition says so by its permission mode.
//
// # The stream
//
// A line may have any length; one that is longer than [MaxLine] is not
// interpreted. A type of event that is not known passes through as an item. The
// stream is believed over the exit code, and its flags over its words: claude says
// "success" of a run that it also marks as an error. A stream that ends without
// saying how is a failure.
package adapter
