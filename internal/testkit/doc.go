// Package testkit is what tests of several packages share: a built
// hayward-child, a way to start one with its real descriptors, directories that
// another user can reach, and checks that nothing was left behind.
//
// Every wait has a deadline of [Patience] and fails the test at it.
package testkit

import "time"

// Patience bounds every wait of a test. It is never the time that something is
// expected to take.
const Patience = 60 * time.Second
