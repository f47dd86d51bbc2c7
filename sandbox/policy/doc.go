// Package policy is what a sandbox profile means, before anything of the system
// it runs on is asked: names, the capability set of each built-in profile, the
// custom profiles of sandbox.toml and what they add, the patterns of deny, and
// the lists of what holds credentials or is run by others later.
//
// # Contract
//
// Everything but [Expand] is pure: the same arguments give the same result. A
// name resolves to one [Profile]; a profile and a [Place] give one
// [Capabilities]. Nothing is dropped silently: an entry that cannot be understood
// is an error that names its line, an entry that matches nothing is reported by
// whoever expands it.
//
// A custom profile extends one built-in profile other than off. Its lists are
// added to those of its base; restrict_network replaces the base's value where it
// is set. The profiles of a project are added to the global ones and never
// replace one.
package policy
