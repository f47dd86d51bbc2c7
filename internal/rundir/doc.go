// Package rundir keeps one directory for each subagent: what it was asked, what
// it wrote, and how it ended.
//
// # Files
//
//	spec.json        the spawn as accepted            written before it is acknowledged
//	record.json      the last live record that names a process
//	result.json      the terminal record              written before it is announced
//	report.json      the supervisor's own report      written by the child
//	stdout.log, stderr.log, transcript.jsonl          written by the child
//	sandbox.json     the sandbox as applied           written by the spawner
//
// Beside them .gates holds one file for each cancelled prompt, see [events.Gate].
//
// Directories are 0700 and files 0600. Every file is opened by its bare name
// relative to the directory's descriptor, never through a symbolic link, and
// must be a regular file.
//
// # Durability
//
// spec.json, result.json and gates are written to a temporary name, synced, renamed,
// and the directory is synced, so a reader sees all of it or none of it. Through a
// handle of [Root.Deferred] the syncs of spec.json and result.json are left to
// [Root.Sync]: until then they outlive any process, and a power cut may take them.
// record.json and sandbox.json skip the syncs: they outlive any process, a power
// cut may take them.
//
// # Removal
//
// [Root.Condemn] renames the directory away and thereby decides that it goes;
// [Root.Purge] deletes what was condemned. Whoever finds a condemned directory
// at start finishes the job.
//
// # Ownership
//
// Methods of [Root] and of a [Dir] may be called concurrently. Two writers of
// the same file of one subagent are the callers' mistake. Memory is bounded
// whatever the size of a file.
package rundir
