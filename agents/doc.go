// Package agents reads agent definitions, personas and roles, and resolves what
// a spawn of one of them means.
//
// A [Definition] is a named type of subagent: its prompt, its tools, its rights,
// its model, how it is isolated and what runs it. A [Persona] is how it should
// work: instructions and a contract of inputs and outputs. A [Role] is a set of
// defaults that goes with the name of a type or of a persona.
//
// # Where they come from
//
// The first place that has a name wins:
//
//	project   .hayward/agents, .claude/agents, .grok/agents, .codex/agents,
//	          from the working directory up to the top of the project
//	user      agents in the configuration directory, then the same directories
//	          of other tools in the home directory
//	built-in  general-purpose, explore, plan
//
// A project that is not trusted, and what is below the top of one that is, can only
// add names, and what would widen rights
// is taken out of its definitions, each with a warning ([Definition.Narrow]).
//
// # Reading
//
// A file is Markdown with a YAML header, or TOML in codex's form. The header is
// read strictly first. Many published files are not YAML, mostly through a colon
// in a description; those are read a second time by lines, see [header].
// Nothing is skipped in silence: a file that is no definition, a key that is not
// known and a value that is not used are all [Fault]s with file and line. A file
// that has an error takes its name with it: what it would have hidden is not used
// in its place.
package agents
