// Package client talks to a Hayward coordinator over its clients' socket.
//
// # Delivery
//
// Every call is one request and one reply. A reply may be lost when the
// coordinator ends; the client then waits for the connection, asking
// [Options.Revive] for a coordinator when none comes back by itself, and asks
// again. That is safe: queries change nothing, a cancel of something ended says
// so, reads and writes of files carry their offset, and a spawn carries its id.
// So [Client.Spawn], [Client.Wait] and [Running] outlive a restart of the
// coordinator.
//
// A reply that hands over an end carries an acknowledgement. Until
// [Reply.Ack] was called the end stays unread for other readers, so call it
// after the value is where it must not be lost.
//
// [Client.Unread] reads the ends of a session one by one and acknowledges each
// after the body of the loop. [Client.Watch] yields what changes and
// [Client.Items] what a subagent did; neither marks anything as read.
//
// # What blocks
//
// A call returns when it has its reply, when its context ends, or when no
// coordinator could be reached for [Options.Patience]. Ending the context of a
// call leaves the subagent alone: use [Client.Cancel] to end it.
//
// # Errors
//
// Refusals are *[events.Error] with the coordinator's code, layer and remedy, and
// match [ErrUnknownID] and its like with [errors.Is]. Of the client
// itself are the codes unreachable, forbidden, timeout and, for a request that
// is refused before it is sent, those of [events.SubagentEvent.Validate].
//
// # Concurrency
//
// A [Client] may be used from any number of goroutines. [Client.Close] ends all
// of its calls; it does not wait for them, their callers do.
package client
