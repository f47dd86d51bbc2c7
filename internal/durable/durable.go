// Package durable writes files that are whole and stay.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile replaces a file, mode 0600. A reader sees the old or the new content,
// also after a power cut once WriteFile has returned.
func WriteFile(path string, content []byte) error {
	dir, name := filepath.Split(path)
	temp, err := os.CreateTemp(dir, "."+name+".")
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return SyncDir(dir)
}

// SyncDir makes what was created, renamed or removed in dir last.
func SyncDir(dir string) error {
	if dir == "" {
		dir = "."
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
