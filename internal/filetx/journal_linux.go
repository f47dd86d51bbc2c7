package filetx

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/durable"
)

// phase is how far a transaction is.
type phase string

const (
	staging   phase = "staging"   // temporary files may exist, no target was touched
	moving    phase = "moving"    // targets may be touched
	committed phase = "committed" // all are; what was there before may go
)

// journal is what is needed to take a transaction back or to finish it. Paths
// are bytes, not text.
type journal struct {
	Version int    `json:"version"`
	Tree    string `json:"tree"`
	Format  string `json:"object_format"`
	Phase   phase  `json:"phase"`
	Ops     []*op  `json:"ops"`
	// Rmdirs are replaced by files, deepest first; Mkdirs are made, ancestors first.
	Rmdirs []*made `json:"rmdirs,omitempty"`
	Mkdirs []*made `json:"mkdirs,omitempty"`
}

const journalVersion = 1

type made struct {
	Path []byte `json:"path"`
	Perm uint32 `json:"perm,omitzero"`
}

// op is one path's change.
type op struct {
	Path []byte `json:"path"`
	// Temp is the new content until it is moved, and then what was there before.
	Temp []byte  `json:"temp"`
	Old  content `json:"old"`
	New  content `json:"new"`
	// Dev and Ino are those of the new file, from phase moving on.
	Dev uint64 `json:"dev,omitzero"`
	Ino uint64 `json:"ino,omitzero"`
}

// content is a state that a path is to have or had.
type content struct {
	Kind Kind   `json:"kind,omitempty"`
	OID  string `json:"oid,omitempty"`
	Perm uint32 `json:"perm,omitzero"`
	UID  uint32 `json:"uid,omitzero"`
	GID  uint32 `json:"gid,omitzero"`
}

func (c content) is(s State) bool { return c.Kind == s.Kind && c.OID == s.OID }

func (o *op) path() string { return string(o.Path) }
func (o *op) temp() string { return string(o.Temp) }

// backup is where a replaced file waits on a file system without exchange.
func (o *op) backup() string { return string(o.Temp) + "~" }

// replaces reports whether a file takes the place of one.
func (o *op) replaces() bool { return o.New.Kind != Absent && o.Old.Kind != Absent }

// tempPrefix begins the names of temporary files.
const tempPrefix = ".hayward-"

func newNonce() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name temporary files: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// write makes the journal durable: the whole of it, or the one before.
func (j *journal) write(file string) error {
	data, err := events.MarshalRecord(j)
	if err != nil {
		return err
	}
	return durable.WriteFile(file, data)
}

func readJournal(file string) (*journal, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var j journal
	if err := events.DecodeRecord(data, &j); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if j.Version != journalVersion {
		return nil, fmt.Errorf("read %s: version %d is unknown", file, j.Version)
	}
	for _, o := range j.Ops {
		for _, p := range []string{o.path(), o.temp()} {
			if err := CheckPath(p); err != nil {
				return nil, fmt.Errorf("read %s: %w", file, err)
			}
		}
	}
	return &j, nil
}

func removeJournal(file string) error {
	dir, name := filepath.Split(file)
	// What a write left that was cut off.
	cut, err := filepath.Glob(filepath.Join(dir, "."+name+".*"))
	if err != nil {
		return err
	}
	for _, temp := range cut {
		if err := os.Remove(temp); err != nil {
			return err
		}
	}
	if err := os.Remove(file); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(file))
}
