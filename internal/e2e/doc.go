// Package e2e holds the tests that run Hayward as a user does: the real binary,
// the real daemon started on demand, real sandboxes, as root and as an ordinary
// user. Each test has a home of its own, and at its end nothing of it may be
// left: no process, no socket that answers.
package e2e
