package client

import "github.com/hayward-dev/hayward/events"

// Errors to compare with, as in errors.Is(err, client.ErrUnknownID). Those that
// are returned are *[events.Error] with a message, details and a remedy of their
// own; the other codes are in package events.
var (
	ErrUnreachable     error = &events.Error{Code: events.CodeUnreachable}
	ErrForbidden       error = &events.Error{Code: events.CodeForbidden}
	ErrTimeout         error = &events.Error{Code: events.CodeTimeout}
	ErrInvalidRequest  error = &events.Error{Code: events.CodeInvalidRequest}
	ErrUnknownID       error = &events.Error{Code: events.CodeUnknownID}
	ErrAmbiguousID     error = &events.Error{Code: events.CodeAmbiguousID}
	ErrDuplicateID     error = &events.Error{Code: events.CodeDuplicateID}
	ErrDuplicateName   error = &events.Error{Code: events.CodeDuplicateName}
	ErrPromptCancelled error = &events.Error{Code: events.CodePromptCancelled}
	ErrBusy            error = &events.Error{Code: events.CodeBusy}
	ErrLimit           error = &events.Error{Code: events.CodeLimit}
	ErrShuttingDown    error = &events.Error{Code: events.CodeShuttingDown}
)
