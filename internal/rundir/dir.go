//go:build unix

package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// The files of a run directory.
const (
	SpecFile       = "spec.json"
	RecordFile     = "record.json"
	ResultFile     = "result.json"
	ReportFile     = "report.json"
	SandboxFile    = "sandbox.json"
	StdoutFile     = "stdout.log"
	AnswerFile     = "answer.txt" // what an agent said last, at its end
	StderrFile     = "stderr.log"
	TranscriptFile = "transcript.jsonl"
	UsageFile      = "usage.jsonl"
)

// ErrTorn is what a file is that exists and cannot be read as what it should
// be: cut short, overwritten, or of another subagent. The error around it is an
// [events.Error] with [events.CodeStoreDamaged] that names the file.
var ErrTorn = errors.New("torn file")

// ErrNoReport is what [Dir.ReadReport] returns when the supervisor never wrote
// one: the file is made before it starts.
var ErrNoReport = errors.New("there is no report")

// maxDocument bounds the JSON files. A spec holds at most one request, which is
// bounded by [events.MaxMessage]; what is larger is not ours.
const maxDocument = 4 << 20

// Dir is the open run directory of one subagent.
type Dir struct {
	id   string
	path string
	dir  *os.File
	late *deferred // of the root
}

// Close releases the descriptor.
func (d *Dir) Close() error { return d.dir.Close() }

// ID is the subagent's id.
func (d *Dir) ID() string { return d.id }

// Path is the directory's absolute path.
func (d *Dir) Path() string { return d.path }

// WriteSpec makes the spec durable, or lets [Root.Sync] do so.
func (d *Dir) WriteSpec(s events.Spec) error { return d.write(SpecFile, s, true) }

// ReadSpec reads the spec back.
func (d *Dir) ReadSpec() (events.Spec, error) {
	var s events.Spec
	err := d.read(SpecFile, &s, func() string { return s.ID })
	return s, err
}

// WriteResult makes the terminal record durable, or lets [Root.Sync] do so.
func (d *Dir) WriteResult(r events.Record) error { return d.write(ResultFile, r, true) }

// ReadResult reads the terminal record back.
func (d *Dir) ReadResult() (events.Record, error) { return d.readRecord(ResultFile) }

// WriteRecord keeps a live record.
func (d *Dir) WriteRecord(r events.Record) error { return d.write(RecordFile, r, false) }

// ReadRecord reads the live record back.
func (d *Dir) ReadRecord() (events.Record, error) { return d.readRecord(RecordFile) }

// WriteSandbox keeps the sandbox report.
func (d *Dir) WriteSandbox(r events.SandboxReport) error { return d.write(SandboxFile, r, false) }

// ReadSandbox reads the sandbox report back.
func (d *Dir) ReadSandbox() (events.SandboxReport, error) {
	var r events.SandboxReport
	err := d.read(SandboxFile, &r, nil)
	return r, err
}

// WriteAnswer keeps what an agent said last. It is the output of its run then.
func (d *Dir) WriteAnswer(text string) error { return d.replace(AnswerFile, []byte(text), true) }

// OutputFile is the name of the file that holds the output of the run: the answer of
// an agent that has ended, else its stdout.
func (d *Dir) OutputFile() (string, error) {
	answered, err := d.Exists(AnswerFile)
	if answered {
		return AnswerFile, err
	}
	return StdoutFile, err
}

// ReadReport reads what the supervisor wrote before it exited. The file is
// append only: of several reports the last counts, and a torn last one is an
// error even behind a whole one. An empty file is [ErrNoReport].
func (d *Dir) ReadReport() (events.Report, error) {
	var r events.Report
	data, err := d.document(ReportFile)
	if err != nil {
		return r, err
	}
	if len(data) == 0 {
		return r, fmt.Errorf("read %s of %s: %w", ReportFile, d.id, ErrNoReport)
	}
	data = bytes.TrimRight(data, "\n")
	if err := events.DecodeRecord(data, &r); err != nil {
		r = events.Report{}
		last := data[bytes.LastIndexByte(data, '\n')+1:]
		if err := events.DecodeRecord(last, &r); err != nil {
			return events.Report{}, d.torn(ReportFile, err)
		}
	}
	if r.ID != d.id {
		return events.Report{}, d.torn(ReportFile, fmt.Errorf("it names id %q", r.ID))
	}
	return r, nil
}

// Exists reports whether the file is there.
func (d *Dir) Exists(name string) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, d.failed("look for", name, err)
}

// Files returns the names in the directory.
func (d *Dir) Files() ([]string, error) {
	dir, err := openDir(d.fd(), ".")
	if err != nil {
		return nil, d.failed("list", ".", err)
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, d.failed("list", ".", err)
	}
	return names, nil
}

// OpenAppend opens a file for appending, and makes it when it is missing.
func (d *Dir) OpenAppend(name string) (*os.File, error) {
	return d.open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT)
}

// OpenRead opens a file for reading.
func (d *Dir) OpenRead(name string) (*os.File, error) { return d.open(name, unix.O_RDONLY) }

func (d *Dir) fd() int { return int(d.dir.Fd()) }

// open opens a regular file by its bare name. O_NONBLOCK keeps a planted FIFO
// from blocking the open; it means nothing for a regular file.
func (d *Dir) open(name string, flags int) (*os.File, error) {
	if name == "" || name == "." || name == ".." || filepath.Base(name) != name {
		return nil, d.failed("open", name, fs.ErrInvalid)
	}
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return nil, d.failed("open", name, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		if err == nil {
			err = fmt.Errorf("not a regular file: %w", fs.ErrInvalid)
		}
		return nil, errors.Join(d.failed("open", name, err), unix.Close(fd))
	}
	if flags&unix.O_CREAT != 0 {
		// The mode of open is subject to the umask.
		if err := unix.Fchmod(fd, 0o600); err != nil {
			return nil, errors.Join(d.failed("open", name, err), unix.Close(fd))
		}
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.path, name)), nil
}

// write replaces a JSON file in one step.
func (d *Dir) write(name string, v any, durable bool) error {
	data, err := events.MarshalRecord(v)
	if err != nil {
		return err
	}
	return d.replace(name, append(data, '\n'), durable)
}

// replace replaces a file in one step.
func (d *Dir) replace(name string, data []byte, durable bool) (err error) {
	temp := "." + name + ".tmp"
	f, err := d.open(temp, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	now := durable && d.late == nil
	if err == nil && now {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = unix.Renameat(d.fd(), temp, d.fd(), name)
	}
	switch {
	case err != nil || !durable:
	case now:
		err = d.dir.Sync()
	default:
		d.late.note(d.id, name)
	}
	if err != nil {
		// On a full disk the half-written file would take what space is left.
		if undo := unix.Unlinkat(d.fd(), temp, 0); undo != nil && !errors.Is(undo, fs.ErrNotExist) {
			err = errors.Join(err, undo)
		}
		return d.failed("write", name, err)
	}
	return nil
}

func (d *Dir) readRecord(name string) (events.Record, error) {
	var r events.Record
	err := d.read(name, &r, func() string { return r.ID })
	return r, err
}

// read decodes a JSON file; id, when given, returns the id that it names.
func (d *Dir) read(name string, v any, id func() string) error {
	data, err := d.document(name)
	if err != nil {
		return err
	}
	if err := events.DecodeRecord(data, v); err != nil {
		return d.torn(name, err)
	}
	if id != nil && id() != d.id {
		return d.torn(name, fmt.Errorf("it names id %q", id()))
	}
	return nil
}

func (d *Dir) document(name string) ([]byte, error) {
	f, err := d.OpenRead(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, d.failed("read", name, err)
	}
	if len(data) > maxDocument {
		return nil, d.torn(name, fmt.Errorf("it is over %d bytes", maxDocument))
	}
	return data, nil
}

func (d *Dir) failed(what, name string, err error) error {
	return fmt.Errorf("%s %s of %s: %w", what, name, d.id, err)
}

func (d *Dir) torn(name string, err error) error {
	return events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "read %s of %s: %w", name, d.id, errors.Join(ErrTorn, err)).
		WithDetail("file", filepath.Join(d.path, name))
}
