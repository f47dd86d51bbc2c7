// Package daemon wires one coordinator: it locks the state directory, starts
// the bus, loads and reconciles what an earlier coordinator left, and serves
// the six events and the services for files and administration.
//
// The order of the start is what makes it safe: lock, server without a
// listener, records, child tokens, adoption, the children's socket, the
// clients' socket. So no client sees a coordinator that does not know its
// children, and no second coordinator touches the store.
package daemon
