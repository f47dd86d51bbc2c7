// Package gateway lets the agents inside subagents reach their model APIs without
// a key and without a network.
//
// An agent speaks HTTP to a listener of its hayward-child; the connection is
// carried over the bus (package relay) and served here, in the coordinator's
// process. A request is for one of the [Upstream]s of the configuration, named by
// the first part of its path; everything else is refused. The gateway checks the
// agent's credential, puts the real key in its place, forwards the request, and
// gives the answer back as it comes.
//
//	POST /anthropic/v1/messages  ->  https://api.anthropic.com/v1/messages
//	POST /openai/v1/responses    ->  https://api.openai.com/v1/responses
//
// # Keys
//
// A key is read for each request from where the configuration says it is; it is
// in no log, no record and no answer.
//
// # Failures
//
// Answers 408, 429, 500, 502, 503, 504 and 529, and a connection that fails before
// the answer began, are tried again. A Retry-After, or a 429 or 529 without one,
// holds all requests to that upstream back, whoever sends them. What cannot be
// had in time is given to the agent as it is. An answer that breaks off while it
// streams ends with an event that says overloaded, so that the agent tries again.
//
// # Metering
//
// The tokens of each answer are counted for the subagent, priced by the table of
// [Options.Prices], appended to usage.jsonl in its run directory, and bounded by its
// budgets, of tokens and of money. A model without a price has no cost, and no call
// to it is let through where there is a budget of money. Content is not kept.
//
// An agent cannot switch this off: a stream is asked for its usage, one that the agent
// leaves is read on for a while, and what says nothing of its usage all the same is
// taken for the most that its request allows, where there is a budget.
package gateway
