// Package config finds and reads Hayward's settings.
//
// # Precedence
//
// Each key is looked up in these places, and the first that has it wins:
//
//	pin          requirements.toml, the system's before the user's
//	flag         of the verb
//	environment  of the client
//	project      .hayward/config.toml, if the project is trusted
//	user         config.toml in the user's configuration directory
//	system       /etc/hayward/config.toml
//	default
//
// Keys of the daemon have neither a variable nor a project's value: one daemon
// serves many clients, so what one of them has in its environment or directory
// must not count for the others. Keys of the client are resolved by the client
// and travel in its requests; the daemon's environment never changes a request.
//
// # Strictness
//
// A file that exists is read completely or is an error: a key that is not known,
// a value of a wrong type or out of range, a file that cannot be read. Every
// [Fault] names its file and line, and all faults are reported at once. The file
// of a project that is not trusted is not read for use; [Load] reports it, so
// that it can be shown.
//
// # Origins
//
// Each [Value] knows where it comes from and what it overrides.
package config
