// Package modelstub is a stand-in for model APIs: real HTTP, scripted answers.
//
// It speaks Anthropic messages, OpenAI responses and OpenAI chat completions, each
// streaming and not, so that agent CLIs and gateways run against it unmodified and
// without an account.
//
// # Which turn is answered
//
// A [Script] has scenarios, a scenario has turns. A request belongs to the first
// scenario whose Match is in its body. It gets the turn whose number is how often
// the model has answered in the conversation that the request carries: so the same
// script serves any number of conversations at once, and one that is resumed goes
// on where it was. A request beyond the last turn is refused with status 400, which
// no client tries again.
//
// # What is recorded
//
// Every request, with its body, and with the headers that carry secrets replaced
// by a [Fingerprint]: a test can tell which key arrived, and no record has it.
package modelstub
