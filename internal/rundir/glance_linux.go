package rundir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// ReadResultDocument returns id's terminal record as it was written, which is as
// [events.MarshalRecord] made it. Nothing says that it can be decoded.
func (r Root) ReadResultDocument(id string) ([]byte, error) {
	data, err := r.glance(id, ResultFile)
	if n := len(data); n > 0 && data[n-1] == '\n' {
		data = data[:n-1]
	}
	return data, err
}

// CheckSpec reads as much of id's spec as shows that it is whole.
func (r Root) CheckSpec(id string) error {
	data, err := r.glance(id, SpecFile)
	if err != nil {
		return err
	}
	var spec struct {
		ID string `json:"id"`
	}
	if err := events.DecodeRecord(data, &spec); err != nil {
		return err
	}
	if spec.ID != id {
		return fmt.Errorf("check %s of %s: it names id %q", SpecFile, id, spec.ID)
	}
	return nil
}

// glance reads a whole document in four calls of the system, which counts where a
// hundred thousand of them are read. It has the same rules as [Dir.OpenRead].
func (r Root) glance(id, name string) (_ []byte, err error) {
	if !events.ValidID(id) {
		return nil, invalidID(id)
	}
	failed := func(err error) error { return fmt.Errorf("read %s of %s: %w", name, id, err) }
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat2(r.fd(), filepath.Join(id, name), &unix.OpenHow{
			Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
		})
	})
	if err != nil {
		return nil, failed(err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return nil, failed(err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxDocument:
		return nil, failed(fs.ErrInvalid)
	}
	data := make([]byte, st.Size)
	for read := 0; read < len(data); {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, data[read:]) })
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, failed(err)
		}
		read += n
	}
	return data, nil
}
