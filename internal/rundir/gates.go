//go:build unix

package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// gatesDir holds one file for each gate, named after a digest of session and
// prompt: these are callers' strings and never part of a path.
const gatesDir = ".gates"

func gateFile(session, prompt string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + prompt))
	return hex.EncodeToString(sum[:]) + ".json"
}

// WriteGate makes a gate durable, in place of the one of the same session and
// prompt.
func (r Root) WriteGate(g events.Gate) error {
	err := unix.Mkdirat(r.fd(), gatesDir, 0o700)
	if err == nil {
		err = r.dir.Sync()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the directory of gates: %w", err)
	}
	d, err := r.openGates()
	if err != nil {
		return err
	}
	return errors.Join(d.write(gateFile(g.Session, g.Prompt), g, true), d.Close())
}

// RemoveGate removes the gate of a session and prompt. None is no error.
func (r Root) RemoveGate(session, prompt string) error {
	d, err := r.openGates()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	name := gateFile(session, prompt)
	err = unix.Unlinkat(d.fd(), name, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil:
		err = d.dir.Sync()
	}
	if err != nil {
		err = d.failed("remove", name, err)
	}
	return errors.Join(err, d.Close())
}

// Gates returns all gates, and one error for each file that cannot be read.
func (r Root) Gates() (gates []events.Gate, torn []error, err error) {
	d, err := r.openGates()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	names, err := d.Files()
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue // a write that was interrupted
		}
		var g events.Gate
		err := d.read(name, &g, nil)
		if err == nil && gateFile(g.Session, g.Prompt) != name {
			err = d.torn(name, fmt.Errorf("it names prompt %q of session %q", g.Prompt, g.Session))
		}
		if err != nil {
			torn = append(torn, err)
			continue
		}
		gates = append(gates, g)
	}
	return gates, torn, errors.Join(err, d.Close())
}

func (r Root) openGates() (*Dir, error) {
	dir, err := openDir(r.fd(), gatesDir)
	if err != nil {
		return nil, fmt.Errorf("open the directory of gates: %w", err)
	}
	return &Dir{id: gatesDir, path: filepath.Join(r.path, gatesDir), dir: dir}, nil
}
