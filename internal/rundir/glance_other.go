//go:build unix && !linux

package rundir

import "errors"

// errGlance sends callers to a [Dir].
var errGlance = errors.New("a quick look at a document needs Linux")

// ReadResultDocument is not there.
func (r Root) ReadResultDocument(string) ([]byte, error) { return nil, errGlance }

// CheckSpec is not there.
func (r Root) CheckSpec(string) error { return errGlance }
