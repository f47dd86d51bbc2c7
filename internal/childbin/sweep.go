package childbin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Sweep removes the supervisors of other versions from binDir, and what an
// interrupted Install left: everything but current and what inUse keeps. Files
// that are not ours stay. Only the one owner of binDir may call it.
func Sweep(binDir, current string, inUse func(fs.FileInfo) bool) (removed []string, err error) {
	entries, err := os.ReadDir(binDir)
	if err != nil {
		return nil, fmt.Errorf("sweep %s: %w", binDir, err)
	}
	var errs error
	for _, e := range entries {
		path := filepath.Join(binDir, e.Name())
		if !e.Type().IsRegular() || path == current || !ours(e.Name()) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && inUse(info) {
			continue
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("sweep %s: %w", binDir, err))
			continue
		}
		removed = append(removed, path)
	}
	return removed, errs
}

// ours reports whether name is one that Install gives.
func ours(name string) bool {
	if strings.HasPrefix(name, "."+Name+"-") {
		return true
	}
	sum, err := hex.DecodeString(name)
	return err == nil && len(sum) == sha256.Size
}
