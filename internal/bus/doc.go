// Package bus is the embedded NATS server and the two unix sockets through
// which children and clients reach it.
//
// # Connections
//
// The server has no TCP listener unless [Options.TCP] asks for one. The
// coordinator's own connections ([Server.Conn]) are in-process and have all
// rights. A connection on a unix socket is bridged to an in-process connection
// of the server by two goroutines; its socket decides who it may be:
//
//	children's socket  user <id> with the token of [Server.Grant], or <id>/rpc
//	                   with the same token: a program inside the child
//	clients' socket    user "client" with the token of [Server.SetClientToken]
//	TCP, if any        the same as the clients' socket
//
// Both sockets are 0600 and take only peers with the coordinator's uid, or root.
// Tokens are kept as SHA-256 and compared in constant time.
//
// # Rights
//
// A child publishes and subscribes below its own subject, except that it cannot
// publish on its control subject; it subscribes to its own inbox and answers
// what it was asked. A program inside it, whose log-in its supervisor writes, sends
// the child's requests and receives their answers, and nothing else. A client sends requests and reads the feed and the
// children's items. Neither reaches the records, and only a client reaches the
// JetStream API: that of the feed, for reading. The server does not check reply
// subjects, so whoever answers a request with a connection of ours must ask
// [ReplyAllowed] first.
//
// # What blocks
//
// A child is read through a token bucket of its own, so one that floods blocks
// itself in its own write and delays nobody. A client or child that does not
// read is cut by the server once a write to it took [Options.WriteDeadline].
//
// # Ownership
//
// Each accepted connection, both accept loops and the server's own goroutines
// end before [Server.Shutdown] returns nil.
package bus
