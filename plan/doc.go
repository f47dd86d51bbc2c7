// Package plan reads a file that names subagents and what each of them needs,
// and runs it.
//
// # The file
//
// TOML, read strictly. At the top: name (default: the file's name), jobs (how
// many subagents may be in flight; default: the coordinator's limit decides),
// fail_fast (the first failure ends the run) or wait_all (the default), on_done (a
// command for the end of the run), the table [defaults], and one [[subagent]] for
// each entry:
//
//	name                 required, unique
//	command              argv, an array; never passed to a shell
//	shell                instead of command: one line or more for sh -c
//	type                 the subagent type; default: command
//	prompt               written to the command's stdin
//	prompt_file          instead of prompt: a file, read at the start
//	description          for people
//	cwd, workspace       directories; relative ones are below the plan's own
//	add_dirs             further directories to make writable
//	deny                 paths and patterns to put out of reach, as in sandbox.toml
//	isolation            the file space: none or worktree
//	sandbox              the profile
//	sandbox_best_effort  go on with what the kernel can enforce
//	max_runtime          such as "90s" or "1h30m"
//	env, labels          tables of strings
//	pass_env             variables taken from the environment of the run
//	needs                names of entries whose outputs this one reads
//	for_each             an array of strings: one subagent for each
//	show                 print this one's output at the end
//	on_done              argv, or a line for sh -c: run after its end
//
// [defaults] takes all of these but name, description, needs, for_each and
// show. An entry's own value replaces the default; env and labels are merged by
// key, add_dirs, deny and pass_env are added. The default cwd is the plan's directory.
//
// # for_each
//
// An entry with for_each stands for one subagent for each item. {item} is
// replaced in every string but needs, deny, sandbox and max_runtime: as it is in
// most, quoted for sh in shell (so it is written there without quotes), and in
// name with every character that a name cannot hold made a "-". A name without
// {item} gets the item appended, or numbers where those names would not be
// distinct and valid. A need that names the entry means all its subagents.
//
// # Needs
//
// A need means wait; without one, subagents run in parallel. The whole stdout
// of each need is readable at the path in HAYWARD_INPUT_<name>, where every
// character of the need's name outside A-Z a-z 0-9 _ is replaced by "_", and a
// leading digit gets a "_" before it. Two needs that would share a variable are
// refused. When a need does not complete, what depends on it is skipped, with
// reason dependency; everything else goes on, unless the plan fails fast: then
// what runs is cancelled and what waits is skipped, with reason fail_fast.
//
// [ForEach] makes a plan of one command and a list of items, without a file.
//
// # Faults
//
// [Load] returns all faults of a file in one [Error], each with file, line and
// key.
//
// # Running
//
// [Plan.Run] owns one goroutine that holds the state of the run, and one for
// each subagent in flight; it returns when all of them have ended. Ids are
// minted here, so a request whose reply was lost is asked again by id and no
// subagent runs twice. Each run is a session of its own, and one prompt of it.
// An observer is told of changes and must not block.
//
// # Going on
//
// A run is kept as a [Record] before anything is spawned, and can be executed by
// one process after another: at most one at a time, each doing what is left. The
// id of a subagent follows from the run, the name and the attempt, so that
// whatever a process had under way when it died, its successor asks for the same
// and the coordinator takes it once. [Record.Survey] finds out what is left.
//
// # on_done
//
// It runs in the process that executes the run: not sandboxed, with that
// process's environment and variables that say what ended, at least once for each
// end, under a deadline. Its failure fails the run.
//
// # The verbs
//
// [Command] is run: it executes a run with progress on stderr and a summary on
// stdout, and handles the signals. [ReportCommand] is report, [Runs.PrintList]
// the list of runs, and [Plan.PrintCheck] looks at a plan without running it.
package plan
