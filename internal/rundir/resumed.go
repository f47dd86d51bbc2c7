//go:build unix

package rundir

import (
	"errors"
	"io/fs"
)

// resumedFile says what of the transcript is of the run that is gone on from.
const resumedFile = "resumed.json"

// Resumed is the part of a transcript that was there before its run began.
type Resumed struct {
	Items uint64 `json:"items"`
	Bytes int64  `json:"bytes"`
}

// WriteResumed keeps what a resumed subagent began with.
func (d *Dir) WriteResumed(r Resumed) error { return d.write(resumedFile, r, false) }

// ReadResumed reads it back; one that began anew has nothing.
func (d *Dir) ReadResumed() (Resumed, error) {
	var r Resumed
	err := d.read(resumedFile, &r, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return Resumed{}, nil
	}
	return r, err
}
